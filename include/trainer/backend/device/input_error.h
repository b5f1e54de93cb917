#pragma once
// How a kernel tells the host that it was given a number which makes no sense.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "trainer/base/host_device.h"

namespace trainer {

// A word of the device that holds the first bad element that was reported, its index and its
// number, or kNone. The host sees it when the queue is done.
class InputErrorFlag {
 public:
  static constexpr uint64_t kNone = ~uint64_t{0};

  explicit InputErrorFlag(uint64_t* word) : word_(word) {}

  // Of several reports the one with the lowest index stays. Indices from 2^32 - 1 on count as that.
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

  // What a word other than kNone says.
  static int64_t IndexOf(uint64_t word) { return static_cast<int64_t>(word >> 32); }
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
