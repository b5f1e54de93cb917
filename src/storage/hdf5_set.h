#pragma once

#include <memory>
#include <string>

#include "trainer/storage/cursor.h"
#include "trainer/storage/record_writer.h"

namespace trainer {

// The rows of the arrays data and label; the key is the row's number. `path` is a file of arrays
// (see OpenArrayFile), or a .txt that lists HDF5 files. Of an empty set only Count may be called.
std::unique_ptr<Cursor> OpenHdf5(const std::string& path);
// Writes such a file (see OpenArrayWriter), and for an HDF5 file a .txt that lists it. `are_rows`:
// see WriteOptions.
std::unique_ptr<RecordWriter> CreateHdf5Set(const std::string& path, bool are_rows);

}  // namespace trainer
