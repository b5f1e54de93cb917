#include "trainer/base/file/file_ops.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <system_error>
#include <thread>

#include "trainer/base/file/file.h"
#include "trainer/base/file/file_error.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Repeats a system call while it fails with EINTR, and for at most 1 s while it fails with EAGAIN.
// Returns its last result with errno unchanged.
template <class Call>
auto Retry(const Call& call) {
  constexpr int kMostPauses = 100;
  constexpr std::chrono::milliseconds kPause{10};
  for (int pauses = 0;;) {
    const auto result = call();
    if (result != -1 || (errno != EINTR && errno != EAGAIN)) return result;
    if (errno == EINTR) continue;
    if (pauses++ == kMostPauses) return result;
    std::this_thread::sleep_for(kPause);
  }
}

// Returns the error code for an errno. Wrong paths are kNoInput for inputs and kCannotCreate for
// outputs, refused access is kNoPermission, and all others, such as a full disk, are kIo.
ErrorCode CodeOf(FileUse use, int errno_value) {
  switch (errno_value) {
    case EACCES:
    case EPERM:
      return ErrorCode::kNoPermission;
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case EEXIST:
      return use == FileUse::kInput ? ErrorCode::kNoInput : ErrorCode::kCannotCreate;
    default:
      return ErrorCode::kIo;
  }
}

// Returns the end of the message that tells the user what to do, with its leading punctuation, or
// "". For a missing input file it is the existing path that is most similar.
std::string Cure(FileUse use, const std::string& path, int errno_value) {
  switch (errno_value) {
    case ENOSPC:
      return "; the disk is full: free some space or choose a folder on another disk";
    case EDQUOT:
      return "; your disk quota is used up: delete files or choose a folder on another disk";
    case EFBIG:
      return "; the file is larger than the limit of the shell (ulimit -f) or the file system";
    case EROFS:
      return "; choose a folder on a disk that is not read-only";
    case EEXIST:
      return "; move it away or choose another name";
    case ENOENT:
    case ENOTDIR:
      if (use == FileUse::kOutput) return "; create the folder first (mkdir -p)";
      if (const std::string near = DidYouMeanPath(path); !near.empty()) return "." + near;
      return "";
    default:
      return "";
  }
}

}  // namespace

int FileOps::Open(const std::string& path, int flags, mode_t mode) {
  return Retry([&] { return open(path.c_str(), flags | O_CLOEXEC, mode); });
}

ssize_t FileOps::Read(int fd, void* to, size_t bytes) {
  return Retry([&] { return read(fd, to, bytes); });
}

ssize_t FileOps::Pread(int fd, void* to, size_t bytes, uint64_t offset) {
  return Retry([&] { return pread(fd, to, bytes, static_cast<off_t>(offset)); });
}

ssize_t FileOps::Write(int fd, const void* from, size_t bytes) {
  return Retry([&] { return write(fd, from, bytes); });
}

int FileOps::Fsync(int fd) {
  return Retry([&] { return fsync(fd); });
}

// Linux frees the descriptor even when a signal interrupts close(): a retry could close another's.
int FileOps::Close(int fd) { return close(fd) == -1 && errno != EINTR ? -1 : 0; }

int FileOps::Rename(const std::string& from, const std::string& to) {
  return Retry([&] { return rename(from.c_str(), to.c_str()); });
}

int FileOps::Link(const std::string& from, const std::string& to) {
  return Retry([&] { return link(from.c_str(), to.c_str()); });
}

int FileOps::Symlink(const std::string& target, const std::string& path) {
  return Retry([&] { return symlink(target.c_str(), path.c_str()); });
}

int FileOps::Unlink(const std::string& path) {
  return Retry([&] { return unlink(path.c_str()); });
}

int FileOps::Allocate(int fd, uint64_t bytes) {
  return Retry([&] { return fallocate(fd, 0, 0, static_cast<off_t>(bytes)); });
}

int FileOps::FreeBytes(const std::string& folder, uint64_t* bytes) {
  struct statvfs info {};
  if (Retry([&] { return statvfs(folder.c_str(), &info); }) != 0) return -1;
  *bytes = static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
  return 0;
}

FileOps& FileOps::Posix() {
  static FileOps ops;
  return ops;
}

void ThrowFileError(FileUse use, const std::string& doing, const std::string& path,
                    int errno_value) {
  throw FileError(CodeOf(use, errno_value), {path},
                  Join("cannot ", doing, ": ", std::generic_category().message(errno_value),
                       Cure(use, path, errno_value)),
                  errno_value);
}

}  // namespace trainer
