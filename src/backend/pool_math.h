#pragma once
// The rules of PoolDesc, one functor each; images are (N, H, W, C) in memory.

#include <algorithm>
#include <cfloat>

#include "trainer/backend/pool.h"
#include "trainer/base/host_device.h"

namespace trainer {

// A window: the part inside the image, and the area that an average divides by.
struct PoolWindow {
  int64_t h0, h1, w0, w1;
  float area;
};

HD PoolWindow PoolWindowAt(const PoolDesc& d, int64_t oh, int64_t ow) {
  constexpr int64_t kZero = 0;
  const int64_t h0 = oh * d.stride_h - d.pad_h, w0 = ow * d.stride_w - d.pad_w;
  const int64_t h1 = std::min(h0 + d.kernel_h, d.in_h + d.pad_h);
  const int64_t w1 = std::min(w0 + d.kernel_w, d.in_w + d.pad_w);
  const int64_t area = std::max(h1 - h0, kZero) * std::max(w1 - w0, kZero);
  return {std::max(h0, kZero), std::min(h1, d.in_h), std::max(w0, kZero), std::min(w1, d.in_w),
          static_cast<float>(area)};
}

// The index of channel c at `place`, h * W + w, of image n.
HD int64_t PoolIn(const PoolDesc& d, int64_t n, int64_t place, int64_t c) {
  return (n * d.in_h * d.in_w + place) * d.channels + c;
}
HD int64_t PoolOut(const PoolDesc& d, int64_t n, int64_t oh, int64_t ow, int64_t c) {
  return ((n * d.out_h + oh) * d.out_w + ow) * d.channels + c;
}

// y, and the winner's place in the input plane, -1 for none, unless `winners` is null.
template <class T>
struct MaxOfWindow {
  PoolDesc d;
  const T* x;
  T* y;
  int32_t* winners;

  HD void operator()(int64_t n, int64_t oh, int64_t ow, int64_t c) const {
    const PoolWindow window = PoolWindowAt(d, oh, ow);
    float value = -FLT_MAX;
    int64_t winner = -1;
    for (int64_t h = window.h0; h < window.h1; ++h) {
      for (int64_t w = window.w0; w < window.w1; ++w) {
        const float at = Load(x[PoolIn(d, n, h * d.in_w + w, c)]);
        if (at > value) {
          value = at;
          winner = h * d.in_w + w;
        }
      }
    }
    const int64_t out = PoolOut(d, n, oh, ow, c);
    Store(y[out], value);
    if (winners != nullptr) winners[out] = static_cast<int32_t>(winner);
  }
};

template <class T>
struct AverageOfWindow {
  PoolDesc d;
  const T* x;
  T* y;

  HD void operator()(int64_t n, int64_t oh, int64_t ow, int64_t c) const {
    const PoolWindow window = PoolWindowAt(d, oh, ow);
    float sum = 0;
    for (int64_t h = window.h0; h < window.h1; ++h) {
      for (int64_t w = window.w0; w < window.w1; ++w) {
        sum += Load(x[PoolIn(d, n, h * d.in_w + w, c)]);
      }
    }
    Store(y[PoolOut(d, n, oh, ow, c)], sum / window.area);
  }
};

}  // namespace trainer
