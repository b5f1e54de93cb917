#pragma once

#include <atomic>
#include <chrono>

namespace trainer {

inline double SteadySeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The clock that measures reading, decoding and transforming, in seconds since an arbitrary time.
// Tests replace it.
inline std::atomic<double (*)()> input_clock{SteadySeconds};
inline double InputNow() { return input_clock.load(std::memory_order_relaxed)(); }

}  // namespace trainer
