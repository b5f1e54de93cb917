#include "trainer/base/file/random_access_file.h"

#include <sys/stat.h>

#include <cerrno>

namespace trainer {

RandomAccessFile::RandomAccessFile(const std::string& path, FileOps& ops)
    : path_(path), ops_(ops), file_(OpenForReading(path, ops)) {
  struct stat facts {};
  if (fstat(fd(), &facts) != 0) ThrowFileError(FileUse::kInput, "read", path_, errno);
  bytes_ = static_cast<uint64_t>(facts.st_size);
}

uint64_t RandomAccessFile::Read(uint64_t offset, uint64_t count, void* to) const {
  uint64_t read = 0;
  while (read < count && offset < bytes_) {
    const ssize_t got = ops_.Pread(fd(), static_cast<char*>(to) + read,
                                   static_cast<size_t>(count - read), offset + read);
    if (got < 0) ThrowFileError(FileUse::kInput, "read", path_, errno);
    if (got == 0) break;
    read += static_cast<uint64_t>(got);
  }
  return read;
}

}  // namespace trainer
