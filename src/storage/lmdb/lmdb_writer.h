#pragma once

#include <memory>
#include <string>

#include "trainer/storage/db_writer.h"

namespace trainer {

std::unique_ptr<DbWriter> CreateLmdb(const std::string& folder);

}  // namespace trainer
