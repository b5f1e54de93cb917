#pragma once
// Max pooling of images with windows of K x K and stride S that are known to the compiler: no
// thread divides, and each reads all that it needs before it compares.

#include <algorithm>
#include <cfloat>
#include <limits>
#include <type_traits>

#include "pool_math.h"
#include "trainer/backend/loops/vector_access.h"

namespace trainer::cuda {

namespace pool_fixed_internal {

// Returns the nearest position to `at` in [0, length). A thread reads there for a position outside
// of the image and drops the value, since reads without a condition overlap.
HD int32_t Within(int32_t at, int32_t length) { return at < 0 ? 0 : at < length ? at : length - 1; }
HD bool IsWithin(int32_t at, int32_t length) {
  return static_cast<uint32_t>(at) < static_cast<uint32_t>(length);
}

}  // namespace pool_fixed_internal

// Writes y for V channels and, unless `taps` is null, the winners' taps: see MaxAndTap.
template <class T, int V, int K, int S>
struct FixedMaxAndTap {
  // Whether the reads of a thread leave enough of 64 registers for nvcc to let them overlap.
  static constexpr bool kFits = K * K * V * sizeof(T) <= 72;
  static constexpr auto kNone = static_cast<uint8_t>(~0);
  PoolDesc d;
  const T* x;
  T* y;
  uint8_t* taps;

  HD void operator()(int64_t n, int64_t oh, int64_t ow, int64_t group) const {
    using pool_fixed_internal::IsWithin;
    using pool_fixed_internal::Within;
    const auto height = static_cast<int32_t>(d.in_h), width = static_cast<int32_t>(d.in_w);
    const auto channels = static_cast<int32_t>(d.channels);
    const auto h0 = static_cast<int32_t>(oh * S - d.pad_h);
    const auto w0 = static_cast<int32_t>(ow * S - d.pad_w);
    const T* const from = x + PoolIn(d, n, 0, group * V);
    Neighbours<T, V> read[K * K];
#pragma unroll
    for (int tap = 0; tap < K * K; ++tap) {
      const int32_t h = Within(h0 + tap / K, height), w = Within(w0 + tap % K, width);
      read[tap] = LoadVector<V>(from, (h * width + w) * channels);
    }
    float most[V];
    Neighbours<uint8_t, V> winners;
    for (int v = 0; v < V; ++v) {
      most[v] = d.Start();
      winners.values[v] = kNone;
    }
#pragma unroll
    for (int tap = 0; tap < K * K; ++tap) {
      const bool inside = IsWithin(h0 + tap / K, height) && IsWithin(w0 + tap % K, width);
#pragma unroll
      for (int v = 0; v < V; ++v) {
        const float value = inside ? Load(read[tap][v]) : -FLT_MAX;
        if (!(value > most[v])) continue;
        most[v] = value;
        winners.values[v] = static_cast<uint8_t>(tap);
      }
    }
    const int64_t out = PoolOut(d, n, oh, ow, group * V);
    StoreVector<V>(most, y, out);
    if (taps != nullptr) WriteTogether(winners, taps, out);
  }
};

// Writes dx for V channels: the sum of dy over the windows that this position has won, in the order
// of the windows.
template <class T, int V, int K, int S>
struct FixedMaxGradient {
  static constexpr bool kFits = V * sizeof(T) <= 16 && (V < 8 || K < 3 || S > 1);  // see above
  static constexpr int kMost = (K + S - 1) / S;  // windows that cover a position along an axis
  PoolDesc d;
  const T* dy;
  const uint8_t* taps;
  T* dx;

  // Holds the index of a window along one axis, and the position's offset in that window. At most
  // kMost windows cover a position; `a` selects one of them.
  struct Covering {
    int32_t window, place;
    HD Covering(int64_t at, int64_t pad, int a) {
      const auto padded = static_cast<uint32_t>(at + pad);
      const int before = kMost - 1 - a;
      window = static_cast<int32_t>(padded / S) - before;
      place = static_cast<int32_t>(padded % S) + before * S;
    }
    HD bool Exists(int32_t windows) const {
      return place < K && pool_fixed_internal::IsWithin(window, windows);
    }
  };

  HD void operator()(int64_t n, int64_t h, int64_t w, int64_t group) const {
    using pool_fixed_internal::Within;
    const auto high = static_cast<int32_t>(d.out_h), wide = static_cast<int32_t>(d.out_w);
    const auto channels = static_cast<int32_t>(d.channels);
    const int64_t first = PoolOut(d, n, 0, 0, group * V);
    Neighbours<T, V> gradients[kMost * kMost];
    Neighbours<uint8_t, V> winners[kMost * kMost];
#pragma unroll
    for (int i = 0; i < kMost * kMost; ++i) {
      const Covering row(h, d.pad_h, i / kMost), column(w, d.pad_w, i % kMost);
      const int32_t at = (Within(row.window, high) * wide + Within(column.window, wide)) * channels;
      gradients[i] = LoadVector<V>(dy + first, at);
      winners[i] = LoadVector<V>(taps + first, at);
    }
    float sum[V] = {};
#pragma unroll
    for (int i = 0; i < kMost * kMost; ++i) {
      const Covering row(h, d.pad_h, i / kMost), column(w, d.pad_w, i % kMost);
      const bool exists = row.Exists(high) && column.Exists(wide);
      const int tap = row.place * K + column.place;
#pragma unroll
      for (int v = 0; v < V; ++v) {
        if (exists && winners[i][v] == tap) sum[v] += Load(gradients[i][v]);
      }
    }
    StoreVector<V>(sum, dx, PoolIn(d, n, h * d.in_w + w, group * V));
  }
};

// Calls f with K and S as integral constants if `desc` is one of the usual pools. Returns whether
// it is, and the elements of an image can be counted in 32 bits.
template <class F>
bool WithFixedWindow(const PoolDesc& desc, const F& f) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const int64_t pixels = std::max(desc.in_h * desc.in_w, desc.out_h * desc.out_w);
  if (pixels * desc.channels > kMost) return false;
  if (desc.kernel_h != desc.kernel_w || desc.stride_h != desc.stride_w) return false;
  const auto is = [&](int64_t kernel, int64_t stride) {
    return desc.kernel_h == kernel && desc.stride_h == stride;
  };
  using Two = std::integral_constant<int, 2>;
  using Three = std::integral_constant<int, 3>;
  if (is(2, 2)) {
    f(Two(), Two());
  } else if (is(3, 1)) {
    f(Three(), std::integral_constant<int, 1>());
  } else if (is(3, 2)) {
    f(Three(), Two());
  } else {
    return false;
  }
  return true;
}

}  // namespace trainer::cuda
