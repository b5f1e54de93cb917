#include "trainer/base/file/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Returns what a file is, for a message, if it is not a regular file of this user with one name;
// else "".
std::string WhyForeign(const struct stat& info) {
  if (S_ISLNK(info.st_mode)) return "a symbolic link";
  if (S_ISDIR(info.st_mode)) return "a folder";
  if (S_ISFIFO(info.st_mode)) return "a pipe (FIFO)";
  if (S_ISSOCK(info.st_mode)) return "a socket";
  if (!S_ISREG(info.st_mode)) return "a device";
  if (info.st_nlink > 1) return Join("a file with ", info.st_nlink, " names (hard links)");
  if (info.st_uid != geteuid()) return Join("a file of another user (number ", info.st_uid, ")");
  return "";
}

// Throws kCannotCreate if the file that `info` describes is not acceptable to WhyForeign. `path` is
// for the message only.
void RequireOwn(const std::string& path, const struct stat& info) {
  const std::string foreign = WhyForeign(info);
  if (foreign.empty()) return;
  throw Error(ErrorCode::kCannotCreate, {AbsolutePath(path)},
              Join("this is ", foreign,
                   ", but the program writes only to regular files of its own user; remove it, or "
                   "choose another name"));
}

}  // namespace

void RequireOwnFile(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) == 0) RequireOwn(path, info);
}

// A missing file is created with O_EXCL, and its owner is not checked, because some servers give
// files that root creates to the user "nobody".
int OpenOwnFile(const std::string& path, int flags, mode_t mode, FileOps& ops) {
  constexpr int kCareful = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  if ((flags & O_EXCL) != 0) return ops.Open(path, flags | kCareful, mode);
  struct stat info {};
  if ((flags & O_CREAT) != 0 && lstat(path.c_str(), &info) != 0) {
    const int fd = ops.Open(path, flags | O_EXCL | kCareful, mode);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  RequireOwnFile(path);
  const int fd = ops.Open(path, (flags & ~(O_CREAT | O_TRUNC)) | kCareful, mode);
  if (fd < 0) return fd;
  FileHandle file(ops, fd);
  if (fstat(fd, &info) != 0) return -1;
  RequireOwn(path, info);  // another file may have replaced it
  if ((flags & O_TRUNC) != 0 && ftruncate(fd, 0) != 0) return -1;
  return file.Release();
}

}  // namespace trainer
