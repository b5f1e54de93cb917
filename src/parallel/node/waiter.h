#pragma once
// How a rank waits for the other ranks of its node: it spins, then sleeps on its doorbell.

#include <chrono>

#include "node/control_block.h"
#include "node/futex.h"
#include "trainer/base/thread/spin.h"

namespace trainer {

// Used by one thread at a time.
class Waiter {
 public:
  Waiter(const ControlBlock& block, int local) : block_(block), status_(block.status(local)) {}

  static constexpr std::chrono::milliseconds kLongestSleep{500};

  // Says that there are more threads than cores. A spinning thread would then delay the thread that
  // it waits for, so Wait spins for a shorter time.
  void SetOversubscribed() { oversubscribed_ = true; }

  // Calls poll() until it returns true: at first without a pause, then whenever another rank has
  // completed a phase. Throws PeerFailed if a rank failed.
  template <class Poll>
  void Wait(const Poll& poll) {
    NoteWait();
    if (Spin(poll, oversubscribed_ ? kOversubscribedSpin : SpinTime())) return;
    status_.waiting_since.store(MonotonicNs(), std::memory_order_relaxed);
    while (!Park(poll)) {
    }
    status_.waiting_since.store(0, std::memory_order_relaxed);
  }

  // Sleeps until another rank notifies this one, for at most `longest`, unless poll() is true
  // already. Returns whether poll() is true.
  template <class Poll>
  bool Park(const Poll& poll, std::chrono::nanoseconds longest = kLongestSleep) {
    const uint32_t seen = status_.doorbell.load();
    status_.sleeping.store(1);
    const bool done = poll();
    if (!done && !block_.HasFailed()) FutexWait(status_.doorbell, seen, longest);
    status_.sleeping.store(0);
    if (!done) block_.ThrowIfFailed();
    return done || Spin(poll, kOversubscribedSpin);
  }

 private:
  static constexpr int64_t kOversubscribedSpin = 5'000;  // nanoseconds

  // Calls poll() for `time` nanoseconds, until it returns true. Returns whether it did. Throws
  // PeerFailed.
  template <class Poll>
  bool Spin(const Poll& poll, int64_t time) const {
    const int64_t end = MonotonicNs() + time;
    do {
      for (int i = 0; i < 16; ++i) {
        if (poll()) return true;
        __builtin_ia32_pause();
      }
      block_.ThrowIfFailed();
    } while (MonotonicNs() < end);
    return false;
  }

  const ControlBlock& block_;
  RankStatus& status_;
  bool oversubscribed_ = false;
};

}  // namespace trainer
