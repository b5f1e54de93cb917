#pragma once
// A mutex in memory that ranks share.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "trainer/base/ranks/shared_window.h"
#include "trainer/base/thread/spin.h"

namespace trainer {

// An unlocked mutex is all zeros. If its owner has died, another rank takes the mutex over. This is
// safe because the mutex protects floats: after a death in the middle of an update, each float
// holds either its old or its new value. The death of an owner on another node cannot be detected,
// so an owner there that stops responding ends the run.
class RobustMutex {
 public:
  // Waits for the mutex: spins, then sleeps. Takes it over from a dead owner. Throws PeerFailed if
  // a rank has failed, and kPeerLost if an owner on another node gives no sign of life.
  void Acquire(int rank, SharedWindow& window) {
    const auto own = static_cast<uint32_t>(rank + 1);
    const int64_t begin = MonotonicNs();
    for (int tries = 0;; ++tries) {
      uint32_t holder = 0;
      if (holder_.compare_exchange_weak(holder, own, std::memory_order_acquire)) return;
      if (holder == 0 || tries < kSpins) continue;
      if (tries % kLook == 0) {
        window.ThrowIfFailed();
        const bool lost = window.IsDead(static_cast<int>(holder) - 1);
        if (lost && holder_.compare_exchange_strong(holder, own, std::memory_order_acquire)) return;
      }
      const int other = static_cast<int>(holder) - 1;
      if (MonotonicNs() - begin > kRemoteWait && !window.IsSameNode(other)) {
        window.WaitFor(other, [&] { return holder_.load() != holder; });
        continue;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  // Acquires the mutex if it is free, and returns whether it did; never waits.
  bool TryAcquire(int rank) {
    uint32_t holder = 0;
    return holder_.compare_exchange_strong(holder, static_cast<uint32_t>(rank + 1),
                                           std::memory_order_acquire);
  }
  void Release() { holder_.store(0, std::memory_order_release); }

 private:
  static constexpr int kSpins = 100, kLook = 200;
  // The nanoseconds after which an owner on another node must give a sign of life. Counting sleeps
  // instead would take minutes where the cores have other work.
  static constexpr int64_t kRemoteWait = 1'000'000'000;

  std::atomic<uint32_t> holder_;  // the owner's rank plus one; 0: unlocked
};

// Holds a RobustMutex while it exists.
class RobustLock {
 public:
  RobustLock(RobustMutex& lock, int rank, SharedWindow& window) : lock_(lock) {
    lock_.Acquire(rank, window);
  }
  ~RobustLock() { lock_.Release(); }
  RobustLock(const RobustLock&) = delete;
  RobustLock& operator=(const RobustLock&) = delete;

 private:
  RobustMutex& lock_;
};

}  // namespace trainer
