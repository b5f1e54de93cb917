#pragma once

#include <algorithm>
#include <cstdint>

#include "trainer/tensor/tensor.h"

namespace trainer {

// Two sums, or two terms of them.
struct SumPair {
  float a = 0, b = 0;
};

// Which elements of a tensor are summed: it is viewed as (outer, channels, inner), row-major in
// memory, with one sum per channel. Used for the gradients of biases, scales and shifts.
struct ChannelSumsDesc {
  int64_t outer = 1, channels = 1, inner = 1;

  // Returns the description for sums along `axis` as the channels. An image's channels are
  // neighbours in memory: inner is 1.
  static ChannelSumsDesc Of(const Shape& shape, int axis) {
    const Rows rows = AxisRows(shape, axis);
    return {rows.count / std::max<int64_t>(1, rows.inner), rows.length, rows.inner};
  }
};

}  // namespace trainer
