#include "lmdb_extents.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "trainer/base/file_system.h"

namespace trainer {
namespace {

constexpr uint64_t kPartBytes = uint64_t{1} << 20;
constexpr uint64_t kPageBytes = 4096;

}  // namespace

LmdbExtents::LmdbExtents(const std::string& path) {
  if (FileSystemAt(path).kind != FileSystemKind::kNetwork) return;
  fd_ = open((path + "/data.mdb").c_str(), O_RDONLY | O_CLOEXEC);
  owns_ = fd_ >= 0;
  struct stat facts {};
  if (owns_ && fstat(fd_, &facts) == 0) file_bytes_ = static_cast<uint64_t>(facts.st_size);
}

LmdbExtents::~LmdbExtents() {
  if (owns_) close(fd_);
}

uint64_t LmdbExtents::Passed(uint64_t offset) {
  if (fd_ < 0 || (offset >= begin_ && offset < end_)) return 0;
  if (offset < end_ || offset >= end_ + kBytes) {
    begin_ = end_ = offset / kPageBytes * kPageBytes;
    return 0;
  }
  begin_ = offset / kPageBytes * kPageBytes;
  end_ = std::min(begin_ + kBytes, std::max(file_bytes_, begin_));
  part_.resize(kPartBytes);
  uint64_t at = begin_;
  while (at < end_) {
    const ssize_t got =
        pread(fd_, part_.data(), std::min(kPartBytes, end_ - at), static_cast<off_t>(at));
    if (got <= 0) break;
    at += static_cast<uint64_t>(got);
  }
  return at - begin_;
}

}  // namespace trainer
