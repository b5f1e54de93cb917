#pragma once

#include <memory>
#include <string>

#include "trainer/storage/cursor.h"

namespace trainer {

std::unique_ptr<Cursor> OpenLmdb(const std::string& path);

}  // namespace trainer
