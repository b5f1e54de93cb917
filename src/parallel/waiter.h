#pragma once
// How a rank waits for the others of its machine.

#include <chrono>

#include "futex.h"
#include "node_block.h"
#include "trainer/base/thread/spin.h"
#include "trainer/parallel/failure.h"

namespace trainer {

// Used by one thread at a time.
class Waiter {
 public:
  Waiter(const NodeBlock& block, int local) : block_(block), slot_(block.slot(local)) {}

  static constexpr std::chrono::milliseconds kLongestSleep{500};

  // More threads than cores: whoever spins takes the time from the one that it waits for.
  void SetCrowded() { crowded_ = true; }

  // Calls poll() until it returns true: for a while without a pause, then whenever another rank
  // posted something. Throws EndedByPeer when a rank failed.
  template <class Poll>
  void Until(const Poll& poll) {
    NoteWait();
    if (Spin(poll, crowded_ ? kCrowdedSpin : SpinTime())) return;
    slot_.waiting_since.store(MonotonicNs(), std::memory_order_relaxed);
    while (!Doze(poll)) {
    }
    slot_.waiting_since.store(0, std::memory_order_relaxed);
  }

  // Sleeps until somebody rings, for `longest` at most, unless poll() is true; returns whether it
  // is.
  template <class Poll>
  bool Doze(const Poll& poll, std::chrono::nanoseconds longest = kLongestSleep) {
    const uint32_t seen = slot_.bell.load();
    slot_.sleeping.store(1);
    const bool done = poll();
    if (!done && !Failed()) FutexWait(slot_.bell, seen, longest);
    slot_.sleeping.store(0);
    if (!done) ThrowIfFailed();
    return done || Spin(poll, kCrowdedSpin);
  }

  void ThrowIfFailed() const {
    if (Failed()) throw EndedByPeer(block_.failure().code);
  }

 private:
  static constexpr int64_t kCrowdedSpin = 5'000;  // nanoseconds

  bool Failed() const { return block_.failure_word().load(std::memory_order_relaxed) != 0; }

  template <class Poll>
  bool Spin(const Poll& poll, int64_t time) const {
    const int64_t end = MonotonicNs() + time;
    do {
      for (int i = 0; i < 16; ++i) {
        if (poll()) return true;
        __builtin_ia32_pause();
      }
      ThrowIfFailed();
    } while (MonotonicNs() < end);
    return false;
  }

  const NodeBlock& block_;
  RankSlot& slot_;
  bool crowded_ = false;
};

}  // namespace trainer
