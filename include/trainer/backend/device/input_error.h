#pragma once
// A flag with which a kernel tells the host that an input number is invalid.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "trainer/base/host_device.h"

namespace trainer {

// A word in device memory that holds the index and the value of the first invalid element reported,
// or kNone. The host may read it when the queue is done.
class InputErrorFlag {
 public:
  static constexpr uint64_t kNone = ~uint64_t{0};

  explicit InputErrorFlag(uint64_t* word) : word_(word) {}

  // The report with the lowest index wins. Indices from 2^32 - 1 on are stored as 2^32 - 1.
  HD void Report(int64_t index, float number) const {
    constexpr int64_t kMax = 0xffffffff;
    uint32_t bits;
    memcpy(&bits, &number, sizeof(bits));
    const auto place = static_cast<uint64_t>(index < kMax ? index : kMax);
    const uint64_t found = place << 32 | bits;
#ifdef __CUDA_ARCH__
    atomicMin(reinterpret_cast<unsigned long long*>(word_), found);
#else
    uint64_t least = __atomic_load_n(word_, __ATOMIC_RELAXED);
    while (found < least && !__atomic_compare_exchange_n(word_, &least, found, true,
                                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
#endif
  }

  // Returns the index in a word other than kNone.
  static int64_t IndexOf(uint64_t word) { return static_cast<int64_t>(word >> 32); }
  // Returns the value in a word other than kNone.
  static float NumberOf(uint64_t word) {
    const auto bits = static_cast<uint32_t>(word);
    float number;
    std::memcpy(&number, &bits, sizeof(number));
    return number;
  }

 private:
  uint64_t* word_;
};

}  // namespace trainer
