#pragma once

#include <memory>
#include <string>

#include "trainer/storage/cursor.h"
#include "trainer/storage/database_writer.h"

namespace trainer {

std::unique_ptr<Cursor> OpenLevelDb(const std::string& path);
std::unique_ptr<DbWriter> CreateLevelDb(const std::string& folder);

}  // namespace trainer
