#pragma once
// Whether threads hang in a call of the system that does not come back. A server that does not
// answer, as of a hard NFS mount, holds a read or the touch of a mapped page without end and
// without an error; such threads have no use for a core, while those that compute or try again now
// and then have.

#include <pthread.h>

#include <chrono>

namespace trainer {

// The time for which a thread of this process has had a core; 0 where it is not known.
std::chrono::nanoseconds CoreTimeOf(pthread_t thread);

// For whoever watches others.
class StallClock {
 public:
  // To be asked a few times a second, with the core time of the threads that are watched, all
  // together. True when it has not grown for `longest`; 0: never. Time for which this process
  // itself was stopped does not count.
  bool HasStalled(std::chrono::nanoseconds core_time, std::chrono::milliseconds longest);

 private:
  using Clock = std::chrono::steady_clock;

  std::chrono::nanoseconds core_time_{-1};  // when last asked
  Clock::duration stalled_{0};
  Clock::time_point asked_;
};

}  // namespace trainer
