#pragma once
// The system calls that read and write files, as an interface: a test derives from FileOps and lets
// the n-th call fail. All code that writes a snapshot uses one.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "trainer/base/error/error.h"

namespace trainer {

// Each function behaves as the call of its name: it returns -1 and sets errno on failure. The
// functions here make the real calls. They repeat a call that a signal interrupted (EINTR), and
// repeat for one second a call that may succeed later (EAGAIN). They are as thread-safe as the
// system calls.
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
  virtual int Symlink(const std::string& target, const std::string& path);
  virtual int Unlink(const std::string& path);
  // Reserves disk space for the file, so that a lack of space or quota shows at once.
  virtual int Allocate(int fd, uint64_t bytes);
  // Stores in `bytes` how many bytes this user may still write to the file system of `folder`.
  virtual int FreeBytes(const std::string& folder, uint64_t* bytes);

  // Returns the object that makes the real calls.
  static FileOps& Posix();
};

enum class FileUse { kInput, kOutput };

// Throws the error that `errno_value` means to the user after `doing` ("open", "write to", ...)
// something with `path`: kNoPermission; kNoInput or kCannotCreate for a missing file or folder;
// otherwise kIo. The message names the call, the system's text and, if there is one, the remedy, or
// the existing file whose path is most similar to a missing one.
[[noreturn]] void ThrowFileError(FileUse use, const std::string& doing, const std::string& path,
                                 int errno_value);

}  // namespace trainer
