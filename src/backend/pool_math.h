#pragma once
// The rules of PoolDesc, one functor each; images are (N, H, W, C) in memory.

#include <algorithm>
#include <cfloat>
#include <cstdint>

#include "trainer/backend/primitives/pool.h"
#include "trainer/base/host_device.h"

namespace trainer {

// Returns whether all positions and channels of an image fit the int32_t that these functors use.
inline bool PoolFits32Bits(const PoolDesc& d) {
  constexpr int64_t kMax = int64_t{1} << 30;
  return d.in_h + d.kernel_h + d.pad_h < kMax && d.in_w + d.kernel_w + d.pad_w < kMax &&
         d.in_h * d.in_w < kMax && d.out_h * d.out_w < kMax && d.channels < kMax &&
         std::max(d.stride_h, d.stride_w) < kMax;
}

// A max pool stores a winner as its tap: its row-major index in the window, including padding. A
// window without a winner has kNoWinner.
template <class Tap>
inline constexpr Tap kNoWinner = static_cast<Tap>(-1);
// Returns whether all taps of a window and kNoWinner fit one byte.
inline bool HasByteTaps(const PoolDesc& d) { return d.kernel_h * d.kernel_w <= kNoWinner<uint8_t>; }

// The part of a window inside the image, and the area that an average divides by.
struct PoolWindow {
  int32_t h0, h1, w0, w1;
  float area;
};

// Returns the window of output (oh, ow). Its part inside the image is empty if h1 <= h0 or w1 <=
// w0.
HD PoolWindow PoolWindowAt(const PoolDesc& d, int64_t oh, int64_t ow) {
  constexpr int64_t kZero = 0;
  const int64_t h0 = oh * d.stride_h - d.pad_h, w0 = ow * d.stride_w - d.pad_w;
  const int64_t h1 = std::min(h0 + d.kernel_h, d.in_h + d.pad_h);
  const int64_t w1 = std::min(w0 + d.kernel_w, d.in_w + d.pad_w);
  const int64_t area = std::max(h1 - h0, kZero) * std::max(w1 - w0, kZero);
  return {static_cast<int32_t>(std::max(h0, kZero)), static_cast<int32_t>(std::min(h1, d.in_h)),
          static_cast<int32_t>(std::max(w0, kZero)), static_cast<int32_t>(std::min(w1, d.in_w)),
          static_cast<float>(area)};
}

// Returns the index of channel c at `place` = h * W + w of image n.
HD int64_t PoolIn(const PoolDesc& d, int64_t n, int64_t place, int64_t c) {
  return (n * d.in_h * d.in_w + place) * d.channels + c;
}
// Returns the index of channel c of output (oh, ow) of image n.
HD int64_t PoolOut(const PoolDesc& d, int64_t n, int64_t oh, int64_t ow, int64_t c) {
  return ((n * d.out_h + oh) * d.out_w + ow) * d.channels + c;
}

// Calls f(place, value) for each element of a window of channel c, row by row.
template <class T, class F>
HD void ForWindow(const PoolDesc& d, const PoolWindow& window, const T* x, int64_t n, int64_t c,
                  const F& f) {
  const T* const from = x + PoolIn(d, n, 0, c);
  const auto width = static_cast<int32_t>(d.in_w);
  for (int32_t h = window.h0; h < window.h1; ++h) {
    for (int32_t w = window.w0; w < window.w1; ++w) {
      const int32_t place = h * width + w;
      f(place, Load(from[place * d.channels]));
    }
  }
}

// Writes y and, unless `winners` is null, the winner's position in the input plane (-1 for none).
template <class T>
struct MaxOfWindow {
  PoolDesc d;
  const T* x;
  T* y;
  int32_t* winners;

  HD void operator()(int64_t n, int64_t oh, int64_t ow, int64_t c) const {
    const int32_t winner = Put(n, oh, ow, c);
    if (winners != nullptr) winners[PoolOut(d, n, oh, ow, c)] = winner;
  }

  // Writes only y and returns the winner's position.
  HD int32_t Put(int64_t n, int64_t oh, int64_t ow, int64_t c) const {
    float value = d.Start();
    int32_t winner = -1;
    ForWindow(d, PoolWindowAt(d, oh, ow), x, n, c, [&](int32_t place, float at) {
      if (!(at > value)) return;
      value = at;
      winner = place;
    });
    Store(y[PoolOut(d, n, oh, ow, c)], value);
    return winner;
  }
};

// Writes y: the sum of a window divided by its area.
template <class T>
struct AverageOfWindow {
  PoolDesc d;
  const T* x;
  T* y;

  HD void operator()(int64_t n, int64_t oh, int64_t ow, int64_t c) const {
    const PoolWindow window = PoolWindowAt(d, oh, ow);
    float sum = 0;
    ForWindow(d, window, x, n, c, [&](int32_t, float at) { sum += at; });
    Store(y[PoolOut(d, n, oh, ow, c)], sum / window.area);
  }
};

}  // namespace trainer
