#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainer {

// Reads the names of classes 0, 1, ... from a text file, one per line, or takes the names of a
// folder's subfolders in byte order, as ImageData does. Accepts Windows line ends. Throws kNoInput,
// kNoPermission, kIo, and kData if the number of names is not `classes`.
std::vector<std::string> ReadClassNames(const std::string& path, int64_t classes);
// Returns the names in the file that belongs to the data of a run; none if `path` is "". Names that
// do not fit are not used: then logs a warning.
std::vector<std::string> ReadClassNamesOfRun(const std::string& path, int64_t classes);

}  // namespace trainer
