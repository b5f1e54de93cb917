#include "trainer/base/steady_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "trainer/base/text.h"

namespace trainer {

FileStamp StampOf(int fd, const std::string& path) {
  struct stat facts {};
  if (fstat(fd, &facts) != 0) ThrowFileError(FileUse::kInput, "read", path, errno);
  return {static_cast<uint64_t>(facts.st_size), facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec};
}

ssize_t PlaceOps::ReadAt(int fd, void* to, size_t bytes, uint64_t at) {
  for (;;) {
    const ssize_t got = pread(fd, to, bytes, static_cast<off_t>(at));
    if (got >= 0 || errno != EINTR) return got;
  }
}

PlaceOps& PlaceOps::Posix() {
  static PlaceOps ops;
  return ops;
}

SteadyFile::SteadyFile(const std::string& path, PlaceOps& ops)
    : path_(path),
      ops_(ops),
      file_(OpenForReading(path, ops)),
      stamp_(StampOf(file_.get(), path)) {}

uint64_t SteadyFile::Read(uint64_t at, uint64_t count, void* to) const {
  bool failed = false;
  uint64_t read = 0;
  return ReadPatiently(FileWas::kThere, [&] {
    if (failed) Reopen();
    failed = true;
    while (read < count) {
      const ssize_t got = ops_.ReadAt(file_.get(), static_cast<char*>(to) + read,
                                      static_cast<size_t>(count - read), at + read);
      if (got < 0) ThrowFileError(FileUse::kInput, "read", path_, errno);
      if (got == 0) break;
      read += static_cast<uint64_t>(got);
    }
    return read;
  });
}

// The new handle gets the old one's number, so that all threads go on with it.
void SteadyFile::Reopen() const {
  const FileHandle again = OpenForReading(path_, ops_);
  if (StampOf(again.get(), path_) != stamp_) {
    throw Error(ErrorCode::kData, {path_},
                "the file was changed while it could not be read; go on from the last snapshot, "
                "with the file as it was");
  }
  if (dup3(again.get(), file_.get(), O_CLOEXEC) < 0) {
    ThrowFileError(FileUse::kInput, "open", path_, errno);
  }
}

}  // namespace trainer
