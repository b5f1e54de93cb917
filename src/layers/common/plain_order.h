#pragma once

#include "trainer/backend/layout.h"

namespace trainer {

// The memory indices of the elements of a tensor's row-major order (N, C, H, W), and back.
struct PlainOrder {
  int64_t channels = 1, pixels = 1;

  PlainOrder() = default;
  explicit PlainOrder(const Shape& shape) {
    if (!IsPermuted(shape)) return;
    channels = shape[1];
    pixels = shape[2] * shape[3];
  }

  HD int64_t Memory(int64_t plain) const {
    const int64_t size = channels * pixels, at = plain % size;
    return plain - at + at % pixels * channels + at / pixels;
  }
  HD int64_t Plain(int64_t memory) const {
    const int64_t size = channels * pixels, at = memory % size;
    return memory - at + at % channels * pixels + at / channels;
  }
};

}  // namespace trainer
