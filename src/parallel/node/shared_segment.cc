#include "node/shared_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "trainer/base/error/error.h"
#include "trainer/base/process/huge_pages.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

std::string ErrnoText() { return std::generic_category().message(errno); }

// Throws kResource for a segment of `bytes` bytes, with advice that depends on the errno `error`.
[[noreturn]] void FailToMake(size_t bytes, int error) {
  const char* const advice = error == EFBIG ? "; the limit for the size of a file applies to it: "
                                              "raise the limit (ulimit -f unlimited)"
                                            : "; start fewer ranks, or request more memory";
  throw Error(ErrorCode::kResource,
              Join("cannot create ", bytes, " bytes of memory that ranks share: ",
                   std::generic_category().message(error), advice));
}

// Makes the system allocate all pages now and returns whether it could. Otherwise the first write
// to a page that it cannot allocate would be a signal that ends the process without a message.
bool HasAllPages(char* data, size_t bytes) {
  if (madvise(data, bytes, MADV_POPULATE_WRITE) == 0) return true;
  return errno != EFAULT && errno != ENOMEM;  // an older kernel lacks this call
}

}  // namespace

SharedSegment::SharedSegment(size_t bytes)
    : fd_(memfd_create("trainer", MFD_CLOEXEC)), bytes_(bytes) {
  if (fd_ < 0 || ftruncate(fd_, static_cast<off_t>(bytes)) != 0) {
    const int error = errno;
    CloseDescriptor();
    FailToMake(bytes, error);
  }
  Map();
  if (HasAllPages(data_, bytes)) return;
  munmap(data_, bytes_);
  CloseDescriptor();
  FailToMake(bytes, ENOMEM);
}

SharedSegment::SharedSegment(int fd, size_t bytes) : fd_(fd), bytes_(bytes) {
  fcntl(fd_, F_SETFD, FD_CLOEXEC);
  Map();
}

SharedSegment::SharedSegment(pid_t process, int fd, size_t bytes) : bytes_(bytes) {
  const std::string path = Join("/proc/", process, "/fd/", fd);
  fd_ = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd_ < 0) {
    throw Error(ErrorCode::kUnavailable, Join("cannot open the memory of process ", process, " (",
                                              path, "): ", ErrnoText()));
  }
  Map();
}

SharedSegment::SharedSegment(SharedSegment&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      bytes_(std::exchange(other.bytes_, 0)),
      data_(std::exchange(other.data_, nullptr)) {}

SharedSegment& SharedSegment::operator=(SharedSegment&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(bytes_, other.bytes_);
  std::swap(data_, other.data_);
  return *this;
}

SharedSegment::~SharedSegment() {
  if (data_ != nullptr) munmap(data_, bytes_);
  CloseDescriptor();
}

void SharedSegment::CloseDescriptor() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

void SharedSegment::Map() {
  void* const at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (at == MAP_FAILED) {
    const std::string why = ErrnoText();
    CloseDescriptor();
    throw Error(ErrorCode::kResource,
                Join("cannot map ", bytes_, " bytes of memory that ranks share: ", why));
  }
  data_ = static_cast<char*>(at);
  AdviseHugePages(data_, bytes_);
}

}  // namespace trainer
