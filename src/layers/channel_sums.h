#pragma once

#include "trainer/backend/reduce.h"
#include "trainer/tensor/shape.h"

namespace trainer {

namespace channel_sums_internal {

// out[c] += sum of channel c of x (batch, channels, inner).
template <class T>
struct ChannelRow {
  const T* x;
  float* out;
  int64_t channels, inner;

  template <class Row>
  HD void operator()(const Row& row) const {
    const float sum = row.Sum(
        [&](int64_t i) { return Load(x[(i / inner * channels + row.index) * inner + i % inner]); });
    row.Once([&] { out[row.index] += sum; });
  }
};

}  // namespace channel_sums_internal

// out[c] += the sum of x over all axes but `axis`, for each place c on it: the gradient of a bias.
inline void AddChannelSums(const Device& device, const ConstTensor& x, int axis, float* out) {
  const Rows rows = AxisRows(x.shape, axis);
  if (rows.inner == 1) {
    return AddColumnSums(device, x, rows.count, rows.length, out);
  }
  WithType(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    MapRows(device, rows.length, rows.count,
            channel_sums_internal::ChannelRow<T>{x.As<T>(), out, rows.length, rows.inner});
  });
}

}  // namespace trainer
