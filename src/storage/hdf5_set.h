#pragma once

#include <memory>
#include <string>

#include "trainer/storage/cursor.h"
#include "trainer/storage/record_writer.h"

namespace trainer {

// The rows of the datasets data and label; the key is the row's number. `path` is a file, or a .txt
// that lists some. Of an empty set only Count may be called.
std::unique_ptr<Cursor> OpenHdf5(const std::string& path);
std::unique_ptr<RecordWriter> CreateHdf5Set(const std::string& path);

}  // namespace trainer
