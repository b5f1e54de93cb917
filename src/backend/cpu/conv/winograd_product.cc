#include <algorithm>
#include <array>
#include <utility>

#include "cpu/conv/winograd.h"
#include "cpu/simd.h"

namespace trainer::cpu {
namespace {

// Vectors of a panel, which a tile multiplies at once.
constexpr int kPanelVectors = 2;

// The register blocking for vectors of L floats.
template <int L>
struct ProductBlocking {
  // The sums of these tiles for two vectors of outputs are held in registers, together with two
  // vectors of kernels and a broadcast: AVX-512 has 32 registers, AVX2 has 16.
  static constexpr int kTiles = L == 16 ? 14 : 6;
  // Returns for how many inputs AddTile holds the sums of `vectors` vectors of outputs.
  static constexpr int Inputs(int vectors) { return L == 16 ? 16 / vectors : 6; }
};

// Returns the offset of vector v in rows of groups of 16 floats, where the same row of the next
// group is `group` floats away.
template <class V>
constexpr int64_t VectorAt(int64_t v, int64_t group) {
  return v * V::kLanes / kLanes * group + v * V::kLanes % kLanes;
}

// Computes y[r, v] = sum over k of left[r, k] * right[k, v] for 16 * blocks k, for R tiles and N
// vectors. Also prefetches a cache line from `ahead` for each k: the kernels come from the
// third-level cache, and the processor does not predict these reads well enough.
template <class V, int R, int N>
struct MultiplyTile {
  static TRAINER_INLINE void Run(const float* left, int64_t left_step, int64_t blocks,
                                 const float* right, const float* ahead, float* y) {
    using F = typename V::F;
    F sum[R][N];
#pragma GCC unroll 14
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < N; ++v) sum[r][v] = F{};
    }
    for (int64_t block = 0; block < blocks; ++block, left += left_step) {
#pragma GCC unroll 4
      for (int k = 0; k < kLanes; ++k, right += N * V::kLanes) {
        __builtin_prefetch(ahead, 0, 2);
        ahead += kLanes;
        F w[N];
#pragma GCC unroll 2
        for (int v = 0; v < N; ++v) V::LoadTo(w[v], right + v * V::kLanes);
#pragma GCC unroll 14
        for (int r = 0; r < R; ++r) {
          F x;
          V::Broadcast(x, &left[r * kLanes + k]);
#pragma GCC unroll 2
          for (int v = 0; v < N; ++v) sum[r][v] += x * w[v];
        }
      }
    }
#pragma GCC unroll 14
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < N; ++v) {
        V::StoreTo(y + VectorAt<V>(v, left_step) + r * kLanes, sum[r][v]);
      }
    }
  }
};

// Adds the sum over t of left[t, r] * right[t, v] to s[r, v], for R inputs and N vectors of
// outputs.
template <class V, int R, int N>
struct AddTile {
  static TRAINER_INLINE void Run(const float* left, const float* right, int64_t tiles, bool fresh,
                                 float* s) {
    using F = typename V::F;
    F sum[R][N];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < N; ++v) {
        if (fresh) {
          sum[r][v] = F{};
        } else {
          V::LoadTo(sum[r][v], s + (r * N + v) * V::kLanes);
        }
      }
    }
    const float* second = right + VectorAt<V>(N - 1, tiles * kLanes);
    for (int64_t t = 0; t < tiles; ++t) {
      F d[2];
      V::LoadTo(d[0], right + t * kLanes);
      V::LoadTo(d[1], second + t * kLanes);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        F x;
        V::Broadcast(x, &left[t * kLanes + r]);
#pragma GCC unroll 2
        for (int v = 0; v < N; ++v) sum[r][v] += x * d[v];
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < N; ++v) V::StoreTo(s + (r * N + v) * V::kLanes, sum[r][v]);
    }
  }
};

using MultiplyTileCall = void (*)(const float*, int64_t, int64_t, const float*, const float*,
                                  float*);
using AddTileCall = void (*)(const float*, const float*, int64_t, bool, float*);

// Returns MultiplyTile<V, R, N> for R = 1, 2, ..., by R - 1.
template <class V, int N, int... R>
constexpr std::array<MultiplyTileCall, sizeof...(R)> MultiplyRow(std::integer_sequence<int, R...>) {
  return {CompiledFor<V, MultiplyTile<V, R + 1, N>, const float*, int64_t, int64_t, const float*,
                      const float*, float*>()...};
}
// Returns AddTile<V, R, N> for R = 1, 2, ..., by R - 1.
template <class V, int N, int... R>
constexpr std::array<AddTileCall, sizeof...(R)> AddRow(std::integer_sequence<int, R...>) {
  return {
      CompiledFor<V, AddTile<V, R + 1, N>, const float*, const float*, int64_t, bool, float*>()...};
}

// The kernels for the vectors V, by vectors - 1 and by tiles or inputs - 1.
template <class V>
struct ProductKernels {
  using Blocking = ProductBlocking<V::kLanes>;
  static constexpr auto kTiles = std::make_integer_sequence<int, Blocking::kTiles>{};
  static constexpr std::array kMultiply = {MultiplyRow<V, 1>(kTiles), MultiplyRow<V, 2>(kTiles)};
  static constexpr auto kAddOne =
      AddRow<V, 1>(std::make_integer_sequence<int, Blocking::Inputs(1)>{});
  static constexpr auto kAddTwo =
      AddRow<V, 2>(std::make_integer_sequence<int, Blocking::Inputs(2)>{});
};

// Implements MultiplyPoint.
template <class V>
void MultiplyPanels(const float* v, int64_t tiles, int64_t in, const float* u, int64_t out,
                    int64_t begin, int64_t end, float* y) {
  constexpr int kMost = ProductBlocking<V::kLanes>::kTiles;
  constexpr int64_t kPanel = kPanelVectors * V::kLanes;
  constexpr int64_t kLines = kPanel / kLanes;  // cache lines of a panel's row
  const int64_t parts = (tiles + kMost - 1) / kMost, step = tiles * kLanes;
  for (int64_t panel = begin; panel < end; ++panel, y += kLines * step) {
    const int64_t vectors =
        std::min<int64_t>(kPanelVectors, out / V::kLanes - kPanelVectors * panel);
    const float* right = u + panel * kPanel * in;
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t first = tiles * part / parts, next = tiles * (part + 1) / parts;
      // Each of the first parts prefetches one line of each row of the next panel; the others
      // prefetch cached data.
      const float* ahead = right + (part < kLines ? kPanel + part * kLanes : 0) * in;
      ProductKernels<V>::kMultiply[vectors - 1][next - first - 1](
          v + first * kLanes, step, in / kLanes, right, ahead, y + first * kLanes);
    }
  }
}

// Adds to the sums of one panel, R or fewer inputs at a time.
template <size_t R>
void AddPanel(const std::array<AddTileCall, R>& add, const float* v, const float* d, int64_t tiles,
              int64_t in, int64_t width, bool fresh, float* s) {
  constexpr int64_t kParts = (kLanes + R - 1) / R;
  for (int64_t c = 0; c < in; c += kLanes, v += tiles * kLanes) {
    for (int64_t part = 0; part < kParts; ++part) {
      const int64_t first = kLanes * part / kParts, next = kLanes * (part + 1) / kParts;
      add[next - first - 1](v + first, d, tiles, fresh, s + (c + first) * width);
    }
  }
}

// Implements AddPoint.
template <class V>
void AddPanels(const float* v, const float* d, int64_t tiles, int64_t in, int64_t out,
               int64_t begin, int64_t end, bool fresh, float* s) {
  constexpr int64_t kPanel = kPanelVectors * V::kLanes;
  s += begin * kPanel * in;
  for (int64_t panel = begin; panel < end; ++panel, s += kPanel * in) {
    if ((panel + 1) * kPanel <= out) {
      AddPanel(ProductKernels<V>::kAddTwo, v, d, tiles, in, kPanel, fresh, s);
    } else {
      AddPanel(ProductKernels<V>::kAddOne, v, d, tiles, in, V::kLanes, fresh, s);
    }
    d += kPanel / kLanes * tiles * kLanes;
  }
}

// Implements AddPixels.
template <class V, class T>
struct SumPixels {
  static TRAINER_INLINE void Run(const T* dy, int64_t pixels, int64_t channels, float* sums) {
    constexpr int64_t kAtOnce = 128;  // small, because long float sums lose digits
    for (int64_t begin = 0; begin < pixels; begin += kAtOnce) {
      const int64_t end = std::min(begin + kAtOnce, pixels);
      for (int64_t m = 0; m < channels; m += V::kLanes) {
        typename V::F sum{}, next, before;
        for (int64_t p = begin; p < end; ++p) {
          V::LoadTo(next, dy + p * channels + m);
          sum += next;
        }
        V::LoadTo(before, sums + m);
        V::StoreTo(sums + m, before + sum);
      }
    }
  }
};

}  // namespace

int64_t PanelOutputs() { return LanesFor(kLanes) * kPanelVectors; }

void MultiplyPoint(const float* v, int64_t tiles, int64_t in, const float* u, int64_t out,
                   int64_t begin, int64_t end, float* y) {
  WithWideLanes([=](auto lanes) {
    MultiplyPanels<typename decltype(lanes)::Type>(v, tiles, in, u, out, begin, end, y);
  });
}

void AddPoint(const float* v, const float* d, int64_t tiles, int64_t in, int64_t out, int64_t begin,
              int64_t end, bool fresh, float* s) {
  WithWideLanes([=](auto lanes) {
    AddPanels<typename decltype(lanes)::Type>(v, d, tiles, in, out, begin, end, fresh, s);
  });
}

template <class T>
void AddPixels(const T* dy, int64_t pixels, int64_t channels, float* sums) {
  WithWideLanes([=](auto lanes) {
    using V = typename decltype(lanes)::Type;
    CompiledFor<V, SumPixels<V, T>, const T*, int64_t, int64_t, float*>()(dy, pixels, channels,
                                                                          sums);
  });
}
template void AddPixels(const float*, int64_t, int64_t, float*);
template void AddPixels(const BFloat16*, int64_t, int64_t, float*);

}  // namespace trainer::cpu
