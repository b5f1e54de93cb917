#pragma once
// The system calls that read and write files, as a seam: a test derives from FileOps and lets the
// n-th call fail. Everything that writes a snapshot goes through one.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "trainer/base/error/error.h"

namespace trainer {

// Each function behaves as the call of its name: -1 and errno on failure. The functions here make
// the real calls. They repeat a call that a signal interrupted (EINTR), and for a second one that
// may succeed later (EAGAIN). Threads: as the system calls.
class FileOps {
 public:
  virtual ~FileOps() = default;

  virtual int Open(const std::string& path, int flags, mode_t mode);
  virtual ssize_t Read(int fd, void* to, size_t bytes);
  virtual ssize_t Pread(int fd, void* to, size_t bytes, uint64_t offset);
  virtual ssize_t Write(int fd, const void* from, size_t bytes);
  virtual int Fsync(int fd);
  virtual int Close(int fd);
  virtual int Rename(const std::string& from, const std::string& to);
  virtual int Link(const std::string& from, const std::string& to);
  virtual int Unlink(const std::string& path);
  // Reserves disk space for the file, so that a lack of space or quota shows at once.
  virtual int Allocate(int fd, uint64_t bytes);
  // The bytes of the file system of `folder` that this user may still fill.
  virtual int FreeBytes(const std::string& folder, uint64_t* bytes);

  // The real calls.
  static FileOps& Posix();
};

enum class FileUse { kInput, kOutput };

// Throws what `errno_value`, met while `doing` ("open", "write to", ...) something with `path`,
// means to the user: kNoPermission; kNoInput or kCannotCreate for a missing file or folder;
// otherwise kIo. The message names the call, the system's text and, where there is one, the cure,
// or the existing file that the path of a missing one nearly names.
[[noreturn]] void ThrowFileError(FileUse use, const std::string& doing, const std::string& path,
                                 int errno_value);

}  // namespace trainer
