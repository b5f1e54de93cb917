#pragma once

#include <memory>
#include <string>

#include "trainer/storage/cursor.h"

namespace trainer {

// Rows of the datasets data and label, as HDF5Data reads them: a row is a record, and its key its
// number. `path` is a file, or a .txt that lists some. The set may be empty: then only Count may be
// called.
std::unique_ptr<Cursor> OpenHdf5(const std::string& path);

}  // namespace trainer
