#pragma once

#include <cstddef>

namespace trainer {

inline constexpr size_t kCacheLine = 64;  // bytes

// Rounds up to whole cache lines, so that blocks that different ranks write do not share one.
inline size_t RoundUpToCacheLines(size_t bytes) {
  return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

}  // namespace trainer
