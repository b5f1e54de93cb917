#pragma once
// Files in memory, which the functions of file.h find by a path as if they were on the disk.

#include <string>
#include <string_view>

namespace trainer {

// From here on Exists, IsMissing, FileSize, ReadFile and OpenForReading find `content` at `path`,
// until the program ends. A second call replaces the content; no thread may then be reading the
// file. Other files may be read and added by other threads. Throws kResource if the memory does not
// suffice.
void AddMemoryFile(const std::string& path, std::string_view content);

// Returns whether AddMemoryFile was called for `path`.
bool IsMemoryFile(const std::string& path);

// Returns the path by which the system opens the file: another one for a file in memory, `path`
// itself for any other.
std::string SystemPath(const std::string& path);

}  // namespace trainer
