#include <immintrin.h>

#include <algorithm>
#include <array>
#include <utility>

#include "cpu/conv/winograd.h"

namespace trainer::cpu {
namespace {

// The sums of these tiles for two vectors of outputs are held in registers, together with two
// vectors of kernels and a broadcast.
constexpr int kMaxTiles = 14;

// Computes y[r, v] = sum over k of left[r, k] * right[k, v] for 16 * blocks k. Also prefetches a
// cache line from `ahead` for each k: the kernels come from the third-level cache, and the
// processor does not predict these reads well enough.

template <int R, int V>
TRAINER_AVX512 void MultiplyTile(const float* left, int64_t left_step, int64_t blocks,
                                 const float* right, const float* ahead, float* y) {
  __m512 sum[R][V];
#pragma GCC unroll 14
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) sum[r][v] = _mm512_setzero_ps();
  }
  for (int64_t block = 0; block < blocks; ++block, left += left_step) {
#pragma GCC unroll 4
    for (int k = 0; k < kLanes; ++k, right += V * kLanes) {
      _mm_prefetch(ahead, _MM_HINT_T1);
      ahead += kLanes;
      __m512 w[V];
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) w[v] = _mm512_loadu_ps(right + v * kLanes);
#pragma GCC unroll 14
      for (int r = 0; r < R; ++r) {
        const __m512 x = _mm512_set1_ps(left[r * kLanes + k]);
#pragma GCC unroll 2
        for (int v = 0; v < V; ++v) sum[r][v] = _mm512_fmadd_ps(x, w[v], sum[r][v]);
      }
    }
  }
#pragma GCC unroll 14
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) _mm512_storeu_ps(y + v * left_step + r * kLanes, sum[r][v]);
  }
}

// Adds the sum over t of left[t, r] * right[t, v] to s[r, v], for 16 / V inputs and V vectors of
// outputs.
template <int V>
TRAINER_AVX512 void AddTile(const float* left, const float* right, int64_t tiles, bool fresh,
                            float* s) {
  constexpr int kRows = kLanes / V;
  __m512 sum[kRows][V];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      sum[r][v] = fresh ? _mm512_setzero_ps() : _mm512_loadu_ps(s + (r * V + v) * kLanes);
    }
  }
  const float* second = right + (V - 1) * tiles * kLanes;
  for (int64_t t = 0; t < tiles; ++t) {
    const __m512 d[2] = {_mm512_loadu_ps(right + t * kLanes), _mm512_loadu_ps(second + t * kLanes)};
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const __m512 x = _mm512_set1_ps(left[t * kLanes + r]);
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) sum[r][v] = _mm512_fmadd_ps(x, d[v], sum[r][v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) _mm512_storeu_ps(s + (r * V + v) * kLanes, sum[r][v]);
  }
}

// Returns MultiplyTile<R, V> for R = 1, 2, ..., by R - 1.
template <int V, int... R>
constexpr auto MultiplyRow(std::integer_sequence<int, R...>) {
  return std::array{&MultiplyTile<R + 1, V>...};
}
constexpr auto kTiles = std::make_integer_sequence<int, kMaxTiles>{};
constexpr std::array kConvWinogradProductMultiply = {MultiplyRow<1>(kTiles),
                                                     MultiplyRow<2>(kTiles)};

}  // namespace

void MultiplyPoint(const float* v, int64_t tiles, int64_t in, const float* u, int64_t out,
                   int64_t begin, int64_t end, float* y) {
  const int64_t parts = (tiles + kMaxTiles - 1) / kMaxTiles, step = tiles * kLanes;
  for (int64_t panel = begin; panel < end; ++panel, y += 2 * step) {
    const int64_t vectors = std::min<int64_t>(2, out / kLanes - 2 * panel);
    const float* right = u + panel * kPanel * in;
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t first = tiles * part / parts, next = tiles * (part + 1) / parts;
      // The first two parts prefetch half of the next panel each; the others prefetch cached data.
      const float* ahead = right + (part < 2 ? kPanel + part * kLanes : 0) * in;
      kConvWinogradProductMultiply[vectors - 1][next - first - 1](
          v + first * kLanes, step, in / kLanes, right, ahead, y + first * kLanes);
    }
  }
}

void AddPoint(const float* v, const float* d, int64_t tiles, int64_t in, int64_t out, int64_t begin,
              int64_t end, bool fresh, float* s) {
  const int64_t block = tiles * kLanes;
  s += begin * kPanel * in;
  for (int64_t panel = begin; panel < end; ++panel, d += 2 * block) {
    if ((panel + 1) * kPanel <= out) {
      for (int64_t c = 0; c < in; c += kLanes / 2, s += kLanes * kLanes) {
        AddTile<2>(v + c / kLanes * block + c % kLanes, d, tiles, fresh, s);
      }
    } else {
      for (int64_t c = 0; c < in; c += kLanes, s += kLanes * kLanes) {
        AddTile<1>(v + c / kLanes * block, d, tiles, fresh, s);
      }
    }
  }
}

TRAINER_AVX512 void AddPixels(const float* dy, int64_t pixels, int64_t channels, float* sums) {
  constexpr int64_t kAtOnce = 128;  // small, because long float sums lose digits
  for (int64_t begin = 0; begin < pixels; begin += kAtOnce) {
    const int64_t end = std::min(begin + kAtOnce, pixels);
    for (int64_t m = 0; m < channels; m += kLanes) {
      __m512 sum = _mm512_setzero_ps();
      for (int64_t p = begin; p < end; ++p) sum += _mm512_loadu_ps(dy + p * channels + m);
      _mm512_storeu_ps(sums + m, _mm512_loadu_ps(sums + m) + sum);
    }
  }
}

}  // namespace trainer::cpu
