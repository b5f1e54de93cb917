#pragma once
// Functions on paths, and on whole files as text.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/file/file_ops.h"

namespace trainer {

// Returns the part before the last '/'; "." if there is none, "/" for a file of the root.
std::string FolderOf(const std::string& path);
// Returns the part after the last '/', or the whole path.
std::string FileNameOf(const std::string& path);
// Returns `folder`/`name`, or `name` if that is absolute or the folder is empty or ".".
std::string JoinPath(const std::string& folder, const std::string& name);
// Returns the absolute path without "." and "..". Symbolic links are not resolved: the only access
// to the disk is to read the working folder's name.
std::string AbsolutePath(const std::string& path);

// Returns false also if the path cannot be examined.
bool Exists(const std::string& path);
// Returns true only if it is certain that nothing exists at `path`.
bool IsMissing(const std::string& path);
// Throws kCannotCreate if the file exists and `force` is false.
void RefuseToReplace(const std::string& path, bool force);
// Follows symbolic links. Returns false also if the path cannot be examined.
bool IsDirectory(const std::string& path);
// Returns " Did you mean 'X'?", where X exists and differs from the missing `path` by a slip in one
// or more of its names; or "".
std::string DidYouMeanPath(const std::string& path);

// Returns the size in bytes without opening the file. Throws kNoInput if it is missing or is not a
// regular file, and kNoPermission or kIo if it cannot be examined.
uint64_t FileSize(const std::string& path);
// Throws as FileSize does if one of the files is missing or is not a regular file. Does not open
// the files, so a file that this user may not read passes.
void RequireFiles(const std::vector<std::string>& paths);

// Returns the whole content. Throws as OpenForReading does, and kData if the file is larger than
// `max_bytes`.
std::string ReadFile(const std::string& path, uint64_t max_bytes, FileOps& ops = FileOps::Posix());

// Owns a file descriptor and closes it. The caller checks the errors of an explicit Close().
class FileHandle {
 public:
  FileHandle(FileOps& ops, int fd) : ops_(&ops), fd_(fd) {}
  FileHandle(FileHandle&& other) noexcept : ops_(other.ops_), fd_(other.Release()) {}
  FileHandle& operator=(FileHandle&&) = delete;
  ~FileHandle() { Close(); }

  int get() const { return fd_; }
  // Returns 0, or -1 with errno. Closing twice is allowed.
  int Close() { return fd_ < 0 ? 0 : ops_->Close(Release()); }
  // Gives the descriptor to the caller.
  int Release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }

 private:
  FileOps* ops_;
  int fd_;
};

// Opens for reading, and never blocks. Throws kNoInput with the absolute path if nothing exists
// there, or if it is a folder, a pipe, a socket or a device; kNoPermission; kIo.
FileHandle OpenForReading(const std::string& path, FileOps& ops = FileOps::Posix());

}  // namespace trainer
