#include "trainer/base/file/paced_ops.h"

#include <ctime>
#include <utility>

namespace trainer {
namespace {

// Shorter rests would cost more than they save.
constexpr std::chrono::nanoseconds kLeast = std::chrono::microseconds(200);

}  // namespace

std::chrono::nanoseconds ThreadTime() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

PacedOps::PacedOps(double share, std::function<void(std::chrono::nanoseconds)> rest,
                   std::function<std::chrono::nanoseconds()> clock)
    : share_(share), rest_(std::move(rest)), clock_(std::move(clock)), computed_(clock_()) {}

ssize_t PacedOps::Read(int fd, void* to, size_t bytes) {
  Rest();
  return FileOps::Read(fd, to, bytes);
}

ssize_t PacedOps::Write(int fd, const void* from, size_t bytes) {
  Rest();
  return FileOps::Write(fd, from, bytes);
}

void PacedOps::Rest() {
  const std::chrono::nanoseconds computed = clock_() - computed_;
  if (computed < kLeast) return;
  rest_(std::chrono::nanoseconds(
      static_cast<int64_t>(static_cast<double>(computed.count()) * (1 / share_ - 1))));
  computed_ = clock_();
}

}  // namespace trainer
