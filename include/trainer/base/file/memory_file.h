#pragma once
// Files in memory, which the functions of file.h find by a path as if they were on the disk.

#include <string>
#include <string_view>

namespace trainer {

// From here on Exists, IsMissing, FileSize, ReadFile and OpenForReading find `content` at `path`,
// until a MemoryFilesScope or the program ends. A second call replaces the content; no thread may
// then be opening the file. Other files may be read and added by other threads. Throws kResource if
// the memory does not suffice.
void AddMemoryFile(const std::string& path, std::string_view content);

// Returns whether there is a file in memory at `path`.
bool IsMemoryFile(const std::string& path);

// Returns the path by which the system opens the file: another one for a file in memory, `path`
// itself for any other.
std::string SystemPath(const std::string& path);

// Removes all files in memory when it is destroyed. No other thread may then be adding or opening
// one; files that are open stay readable.
class MemoryFilesScope {
 public:
  MemoryFilesScope() = default;
  MemoryFilesScope(const MemoryFilesScope&) = delete;
  MemoryFilesScope& operator=(const MemoryFilesScope&) = delete;
  ~MemoryFilesScope();
};

}  // namespace trainer
