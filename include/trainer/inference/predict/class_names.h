#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainer {

// Reads the names of classes 0, 1, ... from a text file, one per line, or takes the names of a
// folder's subfolders in byte order, as ImageData does. Accepts Windows line ends and ignores empty
// lines at the end. Throws kNoInput, kNoPermission and kIo.
std::vector<std::string> ReadClassNames(const std::string& path);
// Does the same. Throws kData if the number of names is not `classes`.
std::vector<std::string> ReadClassNames(const std::string& path, int64_t classes);
// Returns the names in the file that belongs to the data of a run; none if `path` is "". Names that
// do not fit are not used: then logs a warning.
std::vector<std::string> ReadClassNamesOfRun(const std::string& path, int64_t classes);
// Returns the path of the file next to `set` in which `trainer dataset images` lists the names of
// the classes, or "" if there is none.
std::string FindLabels(const std::string& set);

}  // namespace trainer
