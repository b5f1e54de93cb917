#pragma once
// A lock in memory that ranks share.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "trainer/base/ranks/shared_window.h"

namespace trainer {

// All zeros is a free one. That of a rank which died is taken over: what it was writing is numbers,
// each the old one or the new one. Of a rank of another machine nobody knows that: one that holds a
// lock and gives no sign of life ends the run.
class SharedLock {
 public:
  void Acquire(int rank, SharedWindow& peers) {
    const auto own = static_cast<uint32_t>(rank + 1);
    for (int tries = 0;; ++tries) {
      uint32_t holder = 0;
      if (holder_.compare_exchange_weak(holder, own, std::memory_order_acquire)) return;
      if (holder == 0 || tries < kSpins) continue;
      if (tries % kLook == 0) {
        peers.ThrowIfFailed();
        const bool lost = peers.HasEnded(static_cast<int>(holder) - 1);
        if (lost && holder_.compare_exchange_strong(holder, own, std::memory_order_acquire)) return;
      }
      const int other = static_cast<int>(holder) - 1;
      if (tries >= kMany && !peers.IsNear(other)) {
        peers.Await(other, [&] { return holder_.load() != holder; });
        continue;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  // Without waiting.
  bool TryAcquire(int rank) {
    uint32_t holder = 0;
    return holder_.compare_exchange_strong(holder, static_cast<uint32_t>(rank + 1),
                                           std::memory_order_acquire);
  }
  void Release() { holder_.store(0, std::memory_order_release); }

 private:
  static constexpr int kSpins = 100, kLook = 200;
  static constexpr int kMany = 20'000;  // a second or more

  std::atomic<uint32_t> holder_;  // its rank and one, 0: nobody
};

class SharedLockScope {
 public:
  SharedLockScope(SharedLock& lock, int rank, SharedWindow& peers) : lock_(lock) {
    lock_.Acquire(rank, peers);
  }
  ~SharedLockScope() { lock_.Release(); }
  SharedLockScope(const SharedLockScope&) = delete;
  SharedLockScope& operator=(const SharedLockScope&) = delete;

 private:
  SharedLock& lock_;
};

}  // namespace trainer
