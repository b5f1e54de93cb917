#pragma once
// A tensor (N, C, ...) seen as pixels of channels, as normalisations go through it.

#include <algorithm>
#include <cmath>

#include "trainer/base/host_device.h"
#include "trainer/tensor/tensor.h"

namespace trainer {

// A tensor as pixels (its rows along axis 1) of `rows.length` channels, the pixels cut into
// `chunks` equal runs but for the last. For images the channels of a pixel are neighbours.
struct PixelChunks {
  Rows rows;
  int64_t chunks = 1, chunk_rows = 1;
};

// The pixels of each item are one chunk.
inline PixelChunks PerItemChunks(const Shape& shape) {
  const Rows rows = AxisRows(shape, 1);
  return {rows, shape[0], shape.Count(2)};
}

// Chunks of any size, so that at most 64 of them share the work.
inline PixelChunks BalancedChunks(const Shape& shape) {
  const Rows rows = AxisRows(shape, 1);
  const int64_t size = std::max<int64_t>(64, (rows.count + 63) / 64);
  return {rows, std::max<int64_t>(1, (rows.count + size - 1) / size), size};
}

// A variance, in place.
struct InverseRoot {
  float* variance;
  float eps;
  HD void operator()(int64_t i) const { variance[i] = 1 / sqrtf(variance[i] + eps); }
};

// One row per pixel.
template <class F>
struct PixelStep {
  F f;
  PixelChunks in;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = in.rows.Start(row.index), inner = in.rows.inner;
    const int64_t stat = row.index / in.chunk_rows * in.rows.length;
    if (inner == 1) {
      row.ForEach([&](int64_t c) { f(at + c, c, stat + c); });
    } else {
      row.ForEach([&](int64_t c) { f(at + c * inner, c, stat + c); });
    }
  }
};

}  // namespace trainer
