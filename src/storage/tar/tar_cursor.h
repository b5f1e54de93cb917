#pragma once

#include <memory>
#include <string>

#include "trainer/storage/cursor.h"

namespace trainer {

std::unique_ptr<Cursor> OpenTar(const std::string& source);

}  // namespace trainer
