#include <algorithm>
#include <array>
#include <utility>

#include "cpu/conv/winograd.h"
#include "cpu/group_product.h"
#include "cpu/simd.h"

namespace trainer::cpu {
namespace {

// Vectors of a panel, which a tile multiplies at once.
constexpr int kPanelVectors = 2;

// Tiles whose sums for two vectors of outputs are held in registers, together with two vectors of
// kernels and a broadcast: AVX-512 has 32 registers, AVX2 has 16.
template <int L>
constexpr int kMostTiles = L == 16 ? 14 : 6;

// Computes y[r, v] = sum over k < depth of left[r, k] * right[k, v] for R tiles and N vectors. Also
// prefetches a cache line from `ahead` for each k: the kernels come from the third-level cache, and
// the processor does not predict these reads well enough.
template <class V, int R, int N>
struct MultiplyTile {
  static TRAINER_INLINE void Run(const float* left, int64_t left_step, int64_t depth,
                                 const float* right, const float* ahead, float* y) {
    using F = typename V::F;
    F sum[R][N];
#pragma GCC unroll 14
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < N; ++v) sum[r][v] = F{};
    }
    for (int64_t done = 0; done < depth; done += kLanes, left += left_step) {
      const int64_t count = std::min(depth - done, kLanes);
#pragma GCC unroll 4
      for (int64_t k = 0; k < count; ++k, right += N * V::kLanes) {
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

using MultiplyTileCall = void (*)(const float*, int64_t, int64_t, const float*, const float*,
                                  float*);

// Returns MultiplyTile<V, R, N> for R = 1, 2, ..., by R - 1.
template <class V, int N, int... R>
constexpr std::array<MultiplyTileCall, sizeof...(R)> MultiplyRow(std::integer_sequence<int, R...>) {
  return {CompiledFor<V, MultiplyTile<V, R + 1, N>, const float*, int64_t, int64_t, const float*,
                      const float*, float*>()...};
}

// The kernels for the vectors V, by vectors - 1 and by tiles - 1.
template <class V>
struct ProductKernels {
  static constexpr auto kTiles = std::make_integer_sequence<int, kMostTiles<V::kLanes>>{};
  static constexpr std::array kMultiply = {MultiplyRow<V, 1>(kTiles), MultiplyRow<V, 2>(kTiles)};
};

// Implements MultiplyPoint.
template <class V>
void MultiplyPanels(const float* v, int64_t tiles, int64_t in, const float* u, int64_t out,
                    int64_t begin, int64_t end, float* y) {
  constexpr int kMost = kMostTiles<V::kLanes>;
  constexpr int64_t kPanel = kPanelVectors * V::kLanes;
  constexpr int64_t kLines = kPanel / kLanes;  // cache lines of a panel's row
  const int64_t parts = (tiles + kMost - 1) / kMost, step = tiles * kLanes;
  const int64_t all_vectors = RoundUpToLanes(out) / V::kLanes;
  for (int64_t panel = begin; panel < end; ++panel, y += kLines * step) {
    const int64_t vectors = std::min<int64_t>(kPanelVectors, all_vectors - kPanelVectors * panel);
    const float* right = u + panel * kPanel * in;
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t first = tiles * part / parts, next = tiles * (part + 1) / parts;
      // Each of the first parts prefetches one line of each row of the next panel; the others
      // prefetch cached data.
      const float* ahead = right + (part < kLines ? kPanel + part * kLanes : 0) * in;
      ProductKernels<V>::kMultiply[vectors - 1][next - first - 1](v + first * kLanes, step, in,
                                                                  right, ahead, y + first * kLanes);
    }
  }
}

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
  const int64_t panel = PanelOutputs();
  s += begin * panel * in;
  for (int64_t i = begin; i < end; ++i, d += panel * tiles) {
    const int64_t width = std::min(panel, RoundUpToLanes(out) - i * panel);
    for (int64_t c = 0; c < in; c += kLanes) {
      const int64_t rows = std::min(kLanes, in - c);
      MultiplyGroup({.left = v + c * tiles,
                     .right = d,
                     .depth = tiles,
                     .rows = rows,
                     .columns = width,
                     .add = fresh ? nullptr : s,
                     .add_step = width,
                     .y = s,
                     .y_step = width});
      s += rows * width;
    }
  }
}

}  // namespace trainer::cpu
