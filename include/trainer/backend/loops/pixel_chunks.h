#pragma once
// A tensor (N, C, ...) viewed as pixels of channels, for normalisation layers.

#include <algorithm>
#include <cmath>

#include "trainer/base/host_device.h"
#include "trainer/tensor/tensor.h"

namespace trainer {

// A tensor viewed as pixels (its rows along axis 1) of `rows.length` channels. The pixels are cut
// into `chunks` runs of equal size; the last one may be shorter. For images the channels of a pixel
// are neighbours in memory.
struct PixelChunks {
  Rows rows;
  int64_t chunks = 1, chunk_rows = 1;
};

// Makes one chunk of the pixels of each item of the batch, for statistics per item.
inline PixelChunks PerItemChunks(const Shape& shape) {
  const Rows rows = AxisRows(shape, 1);
  return {rows, shape[0], shape.Count(2)};
}

// Makes at most 64 chunks of at least 64 pixels each, except that the last may be smaller. A chunk
// may span items.
inline PixelChunks BalancedChunks(const Shape& shape) {
  const Rows rows = AxisRows(shape, 1);
  const int64_t size = std::max<int64_t>(64, (rows.count + 63) / 64);
  return {rows, std::max<int64_t>(1, (rows.count + size - 1) / size), size};
}

// Replaces a variance by 1 / sqrt(variance + eps), in place.
struct InverseRoot {
  float* variance;
  float eps;
  HD void operator()(int64_t i) const { variance[i] = 1 / sqrtf(variance[i] + eps); }
};

// Calls f(offset in memory, channel, chunk * channels + channel) for each channel of a pixel: a
// functor for MapRows, with one row per pixel.
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
