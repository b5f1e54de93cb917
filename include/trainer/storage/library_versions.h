#pragma once
// The libraries that read and write sets of records.

#include <string>
#include <utility>
#include <vector>

namespace trainer {

// Returns names and versions: {"LMDB", "0.9.24"}, {"LevelDB", "1.23"}, {"HDF5", "1.10.8"}.
std::vector<std::pair<std::string, std::string>> StorageLibraryVersions();

}  // namespace trainer
