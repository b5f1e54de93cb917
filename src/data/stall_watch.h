#pragma once
// Whether threads hang in a read that does not come back.

#include <chrono>
#include <span>
#include <thread>

namespace trainer {

// For a thread that waits for what others make. A server that does not answer, as of a hard NFS
// mount, holds a read or the touch of a mapped page without end and without an error; such threads
// have no use for a core, while those that compute or try again now and then have.
class StallWatch {
 public:
  // To be asked a few times a second while nothing comes. True when none of the threads has run for
  // `longest`; 0: never. Time that this process itself was stopped does not count.
  bool HaveStalled(std::span<std::jthread> threads, std::chrono::milliseconds longest);

 private:
  using Clock = std::chrono::steady_clock;

  std::chrono::nanoseconds ran_{-1};  // all threads together, when last asked
  Clock::duration stalled_{0};
  Clock::time_point asked_;
};

}  // namespace trainer
