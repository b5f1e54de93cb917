#pragma once
// Lets threads sleep on a word that several processes share.

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>

namespace trainer {

// Sleeps if `word` holds `value`. Returns after FutexWakeAll, after `longest`, or spuriously.
inline void FutexWait(std::atomic<uint32_t>& word, uint32_t value,
                      std::chrono::nanoseconds longest) {
  constexpr int64_t kSecond = 1'000'000'000;
  const timespec time = {longest.count() / kSecond, longest.count() % kSecond};
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT, value, &time, nullptr, 0);
}

// Wakes all threads, of any process, that sleep on `word`.
inline void FutexWakeAll(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE, INT32_MAX, nullptr, nullptr,
          0);
}

}  // namespace trainer
