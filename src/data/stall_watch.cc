#include "stall_watch.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <optional>

#include "map_mender.h"

namespace trainer {
namespace {

std::chrono::nanoseconds RunTime(pthread_t thread) {
  clockid_t clock;
  timespec time{};
  if (pthread_getcpuclockid(thread, &clock) != 0 || clock_gettime(clock, &time) != 0) {
    return std::chrono::nanoseconds(0);
  }
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// Of the threads, and of the one that they wait for where a page is to be mended.
std::chrono::nanoseconds RunTime(std::span<std::jthread> threads) {
  std::chrono::nanoseconds sum{0};
  for (std::jthread& thread : threads) {
    if (thread.joinable()) sum += RunTime(thread.native_handle());
  }
  const std::optional<pthread_t> mender = MendingThread();
  return mender ? sum + RunTime(*mender) : sum;
}

}  // namespace

bool StallWatch::HaveStalled(std::span<std::jthread> threads, std::chrono::milliseconds longest) {
  constexpr std::chrono::milliseconds kMostAtOnce{500};
  const Clock::time_point now = Clock::now();
  const std::chrono::nanoseconds ran = RunTime(threads);
  if (ran != ran_) {
    ran_ = ran;
    stalled_ = {};
  } else {
    stalled_ += std::min<Clock::duration>(now - asked_, kMostAtOnce);
  }
  asked_ = now;
  return longest.count() > 0 && stalled_ >= longest;
}

}  // namespace trainer
