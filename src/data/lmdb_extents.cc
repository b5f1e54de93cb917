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
  is_behind_network_ = FileSystemAt(path).kind == FileSystemKind::kNetwork;
  fd_ = open((path + "/data.mdb").c_str(), O_RDONLY | O_CLOEXEC);
  owns_ = fd_ >= 0;
  struct stat facts {};
  if (owns_ && fstat(fd_, &facts) == 0) file_bytes_ = static_cast<uint64_t>(facts.st_size);
}

LmdbExtents::~LmdbExtents() {
  if (owns_) close(fd_);
}

uint64_t LmdbExtents::Passed(uint64_t offset) {
  if (!is_behind_network_ || is_told_ || (offset >= begin_ && offset < end_)) return 0;
  if (offset < end_ || offset >= end_ + kBytes) {
    begin_ = end_ = offset / kPageBytes * kPageBytes;
    return 0;
  }
  begin_ = offset / kPageBytes * kPageBytes;
  end_ = std::min(begin_ + kBytes, std::max(file_bytes_, begin_));
  return Read(begin_, end_);
}

void LmdbExtents::WillRead(uint64_t offset, uint64_t bytes) {
  is_told_ = true;
  if (is_behind_network_) {
    Read(offset / kPageBytes * kPageBytes, std::min(offset + bytes, file_bytes_));
  } else if (fd_ >= 0) {
    posix_fadvise(fd_, static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_WILLNEED);
  }
}

uint64_t LmdbExtents::Read(uint64_t begin, uint64_t end) {
  part_.resize(kPartBytes);
  uint64_t at = begin;
  while (at < end) {
    const ssize_t got =
        pread(fd_, part_.data(), std::min(kPartBytes, end - at), static_cast<off_t>(at));
    if (got <= 0) break;
    at += static_cast<uint64_t>(got);
  }
  return at - begin;
}

}  // namespace trainer
