#include "trainer/base/stall.h"

#include <time.h>

#include <algorithm>

namespace trainer {

std::chrono::nanoseconds CoreTimeOf(pthread_t thread) {
  clockid_t clock;
  timespec time{};
  if (pthread_getcpuclockid(thread, &clock) != 0 || clock_gettime(clock, &time) != 0) {
    return std::chrono::nanoseconds(0);
  }
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

bool StallClock::HasStalled(std::chrono::nanoseconds core_time, std::chrono::milliseconds longest) {
  constexpr std::chrono::milliseconds kMostAtOnce{500};
  const Clock::time_point now = Clock::now();
  if (core_time != core_time_) {
    core_time_ = core_time;
    stalled_ = {};
  } else {
    stalled_ += std::min<Clock::duration>(now - asked_, kMostAtOnce);
  }
  asked_ = now;
  return longest.count() > 0 && stalled_ >= longest;
}

}  // namespace trainer
