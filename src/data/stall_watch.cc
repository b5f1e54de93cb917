#include "stall_watch.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>

namespace trainer {
namespace {

std::chrono::nanoseconds RunTime(std::span<std::jthread> threads) {
  std::chrono::nanoseconds sum{0};
  for (std::jthread& thread : threads) {
    clockid_t clock;
    timespec time{};
    if (!thread.joinable() || pthread_getcpuclockid(thread.native_handle(), &clock) != 0 ||
        clock_gettime(clock, &time) != 0) {
      continue;
    }
    sum += std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }
  return sum;
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
