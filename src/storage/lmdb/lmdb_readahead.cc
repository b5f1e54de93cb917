#include "lmdb/lmdb_readahead.h"

#include <fcntl.h>

#include <algorithm>

#include "trainer/base/file/file_system.h"

namespace trainer {
namespace {

constexpr uint64_t kPartBytes = uint64_t{1} << 20;
constexpr uint64_t kPageBytes = 4096;

}  // namespace

LmdbReadahead::LmdbReadahead(const std::string& path) : file_(path + "/data.mdb") {
  is_behind_network_ = FileSystemAt(path).kind == FileSystemKind::kNetwork;
  file_bytes_ = file_.bytes();
}

uint64_t LmdbReadahead::OnRecord(uint64_t offset) {
  if (!is_behind_network_ || is_told_ || (offset >= begin_ && offset < end_)) return 0;
  if (offset < end_ || offset >= end_ + kBytes) {
    begin_ = end_ = offset / kPageBytes * kPageBytes;
    return 0;
  }
  begin_ = offset / kPageBytes * kPageBytes;
  end_ = std::min(begin_ + kBytes, std::max(file_bytes_, begin_));
  return Read(begin_, end_);
}

void LmdbReadahead::WillNeed(uint64_t offset, uint64_t bytes) {
  is_told_ = true;
  if (is_behind_network_) {
    Read(offset / kPageBytes * kPageBytes, std::min(offset + bytes, file_bytes_));
  } else {
    posix_fadvise(file_.fd(), static_cast<off_t>(offset), static_cast<off_t>(bytes),
                  POSIX_FADV_WILLNEED);
  }
}

uint64_t LmdbReadahead::Read(uint64_t begin, uint64_t end) {
  part_.resize(kPartBytes);
  uint64_t at = begin;
  while (at < end) {
    const uint64_t got = file_.Read(at, std::min(kPartBytes, end - at), part_.data());
    if (got == 0) break;
    at += got;
  }
  return at - begin;
}

}  // namespace trainer
