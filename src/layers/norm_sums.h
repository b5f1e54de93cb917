#pragma once
// The passes that BatchNorm, GroupNorm and MVN share: sums over pixels, channel by channel, and a
// step that uses one number per channel.

#include <algorithm>
#include <cmath>

#include "trainer/backend/map_rows.h"
#include "trainer/tensor/tensor.h"

namespace trainer {

// A tensor as pixels (its rows along axis 1) of `rows.length` channels, the pixels cut into
// `chunks` equal runs but for the last. For images the channels of a pixel are neighbours.
struct PixelChunks {
  Rows rows;
  int64_t chunks = 1, chunk_rows = 1;
};

// The pixels of each item are one chunk.
inline PixelChunks ItemChunks(const Shape& shape) {
  const Rows rows = AxisRows(shape, 1);
  return {rows, shape[0], shape.Count(2)};
}

// Chunks of any size, so that at most 64 of them share the work.
inline PixelChunks WorkChunks(const Shape& shape) {
  const Rows rows = AxisRows(shape, 1);
  const int64_t size = std::max<int64_t>(64, (rows.count + 63) / 64);
  return {rows, std::max<int64_t>(1, (rows.count + size - 1) / size), size};
}

// What is summed, besides what the layers define.
template <class T>
struct ValueOf {
  const T* x;
  HD float operator()(int64_t at, int64_t, int64_t) const { return Load(x[at]); }
};
template <class T>
struct ProductOf {
  const T *a, *b;
  HD float operator()(int64_t at, int64_t, int64_t) const { return Load(a[at]) * Load(b[at]); }
};

template <class T>
struct SquareAround {
  const T* x;
  const float* mean;  // per chunk and channel
  HD float operator()(int64_t at, int64_t, int64_t stat) const {
    const float d = Load(x[at]) - mean[stat];
    return d * d;
  }
};

// Sums per item and channel become, in each of a group's neighbouring channels, `by` times the sum
// over the group. One row per group.
struct MeanOfGroup {
  float* sums;
  float by;

  template <class Row>
  HD void operator()(const Row& row) const {
    float* const own = sums + row.index * row.length;
    const float mean = row.Sum([&](int64_t c) { return own[c]; }) * by;
    row.ForEach([&](int64_t c) { own[c] = mean; });
  }
};

// A variance, in place.
struct InverseRoot {
  float* variance;
  float eps;
  HD void operator()(int64_t i) const { variance[i] = 1 / sqrtf(variance[i] + eps); }
};

namespace norm_internal {

inline constexpr int kLanes = 16;

template <class F>
struct ChunkSums {
  F f;
  PixelChunks in;
  float* out;
  int64_t groups;

  HD void operator()(int64_t task) const {
    const int64_t chunk = task / groups, first = task % groups * kLanes;
    const int64_t channels = in.rows.length;
    const int64_t begin = chunk * in.chunk_rows;
    const int64_t wish = begin + in.chunk_rows;
    const int64_t end = wish < in.rows.count ? wish : in.rows.count;
    const int lanes = channels - first < kLanes ? static_cast<int>(channels - first) : kLanes;
    float sum[kLanes] = {};
    if (in.rows.inner == 1 && lanes == kLanes) {
      for (int64_t r = begin; r < end; ++r) {
        for (int l = 0; l < kLanes; ++l) {
          sum[l] += f(r * channels + first + l, first + l, chunk * channels + first + l);
        }
      }
    } else {
      for (int l = 0; l < lanes; ++l) {
        for (int64_t r = begin; r < end; ++r) {
          const int64_t at = in.rows.Start(r) + (first + l) * in.rows.inner;
          sum[l] += f(at, first + l, chunk * channels + first + l);
        }
      }
    }
    for (int l = 0; l < lanes; ++l) out[chunk * channels + first + l] = sum[l];
  }
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

}  // namespace norm_internal

// out[chunk][channel] = the sum of f(place in memory, channel, chunk * channels + channel) over the
// chunk's pixels.
template <class F>
void SumChunks(const Device& device, const PixelChunks& in, F f, float* out) {
  const int64_t groups = (in.rows.length + norm_internal::kLanes - 1) / norm_internal::kLanes;
  const norm_internal::ChunkSums<F> task{f, in, out, groups};
  const int64_t tasks = in.chunks * groups;
  if (device.kind() != DeviceKind::kCpu) return ForEach(device, tasks, task);
  const int64_t work = std::max<int64_t>(1, in.chunk_rows * norm_internal::kLanes);
  ParallelFor(tasks, task, std::max<int64_t>(1, parallel_for_internal::kGrain / work));
}

// f(place in memory, channel, chunk * channels + channel) for every element.
template <class F>
void ForEachPixel(const Device& device, const PixelChunks& in, F f) {
  MapRows(device, in.rows.count, in.rows.length, norm_internal::PixelStep<F>{f, in});
}

}  // namespace trainer
