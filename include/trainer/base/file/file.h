#pragma once
// Paths, and whole files as text.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/file/file_ops.h"

namespace trainer {

// The part before the last '/' ("." when there is none, "/" for a file of the root); the part
// after.
std::string FolderOf(const std::string& path);
std::string FileNameOf(const std::string& path);
// `folder`/`name`, or `name` when that is absolute or the folder is empty or ".".
std::string JoinPath(const std::string& folder, const std::string& name);
// `path` from the root, without touching the disk beyond the working folder's name.
std::string AbsolutePath(const std::string& path);

// False also when the path cannot be looked at.
bool Exists(const std::string& path);
// True only when it is known that nothing is there.
bool IsMissing(const std::string& path);
bool IsDirectory(const std::string& path);
// " Did you mean 'X'?", where X is there and differs from the missing `path` by a slip in one or
// more names of it; or "".
std::string DidYouMeanPath(const std::string& path);

// Bytes. Throws as OpenForReading does.
uint64_t FileSize(const std::string& path);
// Throws as OpenForReading does if one of the files cannot be opened.
void RequireFiles(const std::vector<std::string>& paths);

// Throws as OpenForReading does; kData when the file is larger than `max_bytes`.
std::string ReadFile(const std::string& path, uint64_t max_bytes, FileOps& ops = FileOps::Posix());

// A descriptor that closes itself. Errors of an explicit Close() are the caller's to check.
class FileHandle {
 public:
  FileHandle(FileOps& ops, int fd) : ops_(&ops), fd_(fd) {}
  FileHandle(FileHandle&& other) noexcept : ops_(other.ops_), fd_(other.Release()) {}
  FileHandle& operator=(FileHandle&&) = delete;
  ~FileHandle() { Close(); }

  int get() const { return fd_; }
  // 0, or -1 with errno. Closing twice is allowed.
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

// Opens for reading; never waits. Throws kNoInput with the absolute path, also for a folder, a
// pipe, a socket or a device; kNoPermission, kIo.
FileHandle OpenForReading(const std::string& path, FileOps& ops = FileOps::Posix());

}  // namespace trainer
