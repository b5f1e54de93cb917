#include "cpu/conv/tiles.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <utility>

namespace trainer::cpu {
namespace {

// R x V accumulators, V vectors of the right operand and a broadcast must fit into 32 registers.
constexpr int kMaxVectors = 3;
constexpr int kMaxRows = 12;
// Returns how many rows a tile of this many vectors may have.
constexpr int RowsFor(int vectors) { return vectors == 3 ? 8 : kMaxRows; }

constexpr int kDotRows = 4;
constexpr int kDotColumns = 4;

// Returns the mask of the lanes of the last of `vectors` vectors that `columns` fill.
__mmask16 LastMask(int64_t columns, int64_t vectors) {
  const int64_t lanes = std::min(columns - (vectors - 1) * kLanes, kLanes);
  return static_cast<__mmask16>((1u << lanes) - 1);
}

// Computes a tile of MultiplyPixels in registers: R pixels by V vectors of columns. `last` masks
// the columns of the last vector that are written.
template <int R, int V>
TRAINER_AVX512 void TileMultiply(const ProductTiles& t, const int64_t* pixel, const float* w,
                                 const float* bias, float* y, __mmask16 last) {
  __m512 sum[R][V];
  const float* x[R];
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) x[r] = t.x + pixel[r];
#pragma GCC unroll 12
  for (int v = 0; v < V; ++v) {
    const __m512 start = bias != nullptr ? _mm512_loadu_ps(bias + v * kLanes) : _mm512_setzero_ps();
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) sum[r][v] = start;
  }
  const int64_t *tap = t.tap, *end = t.tap + t.taps;
  for (const int64_t step = t.w_step; tap != end; ++tap, w += step) {
    const int64_t at = *tap;
    __m512 right[V];
#pragma GCC unroll 12
    for (int v = 0; v < V; ++v) right[v] = _mm512_loadu_ps(w + v * kLanes);
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      const __m512 left = _mm512_set1_ps(x[r][at]);
#pragma GCC unroll 12
      for (int v = 0; v < V; ++v) sum[r][v] = _mm512_fmadd_ps(left, right[v], sum[r][v]);
    }
  }
  const int64_t y_pixel = t.y_pixel;
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r, y += y_pixel) {
#pragma GCC unroll 12
    for (int v = 0; v + 1 < V; ++v) _mm512_storeu_ps(y + v * kLanes, sum[r][v]);
    _mm512_mask_storeu_ps(y + (V - 1) * kLanes, last, sum[r][V - 1]);
  }
}

// Returns the sum of the 16 lanes. _mm512_reduce_add_ps is not used, because GCC 12 warns that it
// may read an uninitialised value.
TRAINER_AVX512 inline float SumOfLanes(__m512 x) {
  using Half = float __attribute__((vector_size(32)));
  using Quarter = float __attribute__((vector_size(16)));
  const Half half = __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7) +
                    __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15);
  const Quarter quarter = __builtin_shufflevector(half, half, 0, 1, 2, 3) +
                          __builtin_shufflevector(half, half, 4, 5, 6, 7);
  return (quarter[0] + quarter[2]) + (quarter[1] + quarter[3]);
}

// Computes a tile of DotPixels in registers: R pixels by T columns, with 16 partial sums each.
template <int R, int T>
TRAINER_AVX512 void DotTile(const DotTiles& t, const int64_t* pixel, const float* w,
                            const float* bias, float* y) {
  __m512 sum[R][T];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < T; ++j) sum[r][j] = _mm512_setzero_ps();
  }
  const int64_t wide = RoundUpToLanes(t.length);
  const __mmask16 last = LastMask(t.length, wide / kLanes);
  for (int64_t i = 0; i < t.rows; ++i, w += t.columns * wide) {
    for (int64_t k = 0; k < wide; k += kLanes) {
      const __mmask16 mask = k + kLanes < wide ? 0xffff : last;
      __m512 right[T];
#pragma GCC unroll 4
      for (int j = 0; j < T; ++j) right[j] = _mm512_loadu_ps(w + j * wide + k);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const __m512 left = _mm512_maskz_loadu_ps(mask, t.x + pixel[r] + i * t.x_row + k);
#pragma GCC unroll 4
        for (int j = 0; j < T; ++j) sum[r][j] = _mm512_fmadd_ps(left, right[j], sum[r][j]);
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < T; ++j) {
      y[r * t.y_pixel + j] = SumOfLanes(sum[r][j]) + (bias != nullptr ? bias[j] : 0.0f);
    }
  }
}

// Computes a tile of AddOuterProducts in registers: adds the sum over all positions to R rows by V
// vectors of g. `last` masks the loads of the last vector of `right`, which is not padded; rows of
// g are padded and are read and written as whole vectors.
template <int R, int V>
TRAINER_AVX512 void GradientTile(const GradientTiles& t, const float* left_at,
                                 const float* right_at, float* g, __mmask16 last) {
  __m512 sum[R][V];
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 12
    for (int v = 0; v < V; ++v) sum[r][v] = _mm512_loadu_ps(g + r * t.g_step + v * kLanes);
  }
  const int64_t left_step = t.left.pixel, right_step = t.right.pixel;
  for (int64_t image = 0; image < t.images; ++image) {
    const float* left_line = left_at + image * t.left.image;
    const float* right_line = right_at + image * t.right.image;
    for (int64_t line = 0; line < t.lines; ++line) {
      const float *from = left_line, *to = right_line;
      for (int64_t p = 0; p < t.pixels; ++p, from += left_step, to += right_step) {
        __m512 right[V];
#pragma GCC unroll 12
        for (int v = 0; v + 1 < V; ++v) right[v] = _mm512_loadu_ps(to + v * kLanes);
        right[V - 1] = _mm512_maskz_loadu_ps(last, to + (V - 1) * kLanes);
#pragma GCC unroll 12
        for (int r = 0; r < R; ++r) {
          const __m512 left = _mm512_set1_ps(from[r]);
#pragma GCC unroll 12
          for (int v = 0; v < V; ++v) sum[r][v] = _mm512_fmadd_ps(left, right[v], sum[r][v]);
        }
      }
      left_line += t.left.line;
      right_line += t.right.line;
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 12
    for (int v = 0; v < V; ++v) _mm512_storeu_ps(g + r * t.g_step + v * kLanes, sum[r][v]);
  }
}

// Returns TileMultiply<R, V> for R = 1, 2, ..., by R - 1.
template <int V, int... R>
constexpr auto TileMultiplyRow(std::integer_sequence<int, R...>) {
  return std::array{&TileMultiply<std::min(R + 1, RowsFor(V)), V>...};
}
// Returns GradientTile<R, V> for R = 1, 2, ..., by R - 1.
template <int V, int... R>
constexpr auto GradientRow(std::integer_sequence<int, R...>) {
  return std::array{&GradientTile<std::min(R + 1, RowsFor(V)), V>...};
}
// Returns DotTile<R, T> for R = 1, 2, ..., by R - 1.
template <int T, int... R>
constexpr auto DotRow(std::integer_sequence<int, R...>) {
  return std::array{&DotTile<R + 1, T>...};
}
constexpr auto kTilesRows = std::make_integer_sequence<int, kMaxRows>{};
constexpr auto kDots = std::make_integer_sequence<int, kDotRows>{};
constexpr std::array kTileMultiply = {
    TileMultiplyRow<1>(kTilesRows), TileMultiplyRow<2>(kTilesRows), TileMultiplyRow<3>(kTilesRows)};
constexpr std::array kGradient = {GradientRow<1>(kTilesRows), GradientRow<2>(kTilesRows),
                                  GradientRow<3>(kTilesRows)};
constexpr std::array kDot = {DotRow<1>(kDots), DotRow<2>(kDots), DotRow<3>(kDots),
                             DotRow<4>(kDots)};
static_assert(kDot.size() == kDotColumns && kTileMultiply.size() == kMaxVectors);

// Splits [0, count) into near-equal parts of at most `most` and calls f(begin, end) for each. A
// part is a tile whose sums stay in registers.
template <class F>
void ForTiles(int64_t count, int64_t most, F f) {
  const int64_t parts = (count + most - 1) / most;
  for (int64_t part = 0; part < parts; ++part) {
    f(count * part / parts, count * (part + 1) / parts);
  }
}

}  // namespace

void MultiplyPixels(const ProductTiles& t, int64_t pixels) {
  ForTiles(RoundUpToLanes(t.columns) / kLanes, kMaxVectors, [&](int64_t v0, int64_t v1) {
    const int64_t vectors = v1 - v0, column = v0 * kLanes;
    const __mmask16 last = LastMask(t.columns - column, vectors);
    const float* bias = t.bias != nullptr ? t.bias + column : nullptr;
    ForTiles(pixels, RowsFor(static_cast<int>(vectors)), [&](int64_t p0, int64_t p1) {
      kTileMultiply[vectors - 1][p1 - p0 - 1](t, t.pixel + p0, t.w + column, bias,
                                              t.y + p0 * t.y_pixel + column, last);
    });
  });
}

void DotPixels(const DotTiles& t, int64_t pixels) {
  const int64_t wide = RoundUpToLanes(t.length);
  ForTiles(t.columns, kDotColumns, [&](int64_t j0, int64_t j1) {
    const float* bias = t.bias != nullptr ? t.bias + j0 : nullptr;
    ForTiles(pixels, kDotRows, [&](int64_t p0, int64_t p1) {
      kDot[j1 - j0 - 1][p1 - p0 - 1](t, t.pixel + p0, t.w + j0 * wide, bias,
                                     t.y + p0 * t.y_pixel + j0);
    });
  });
}

int64_t TailColumns(int64_t columns, int64_t rows, int64_t length) {
  // Costs are in vector operations per pixel: dot products and the sums across their lanes, against
  // the products with a nearly empty vector of columns.
  const int64_t tail = columns % kLanes;
  const int64_t dots = tail * (rows * RoundUpToLanes(length) / kLanes + 10);
  return dots * 3 < rows * length * 2 ? tail : 0;
}

TRAINER_AVX512 void AddOverlapping(const OverlappingSegments& t, float* to) {
  for (int64_t place = 0; place < (t.count - 1) * t.stride + t.length; ++place, to += t.width) {
    // In segment p, this is group number place - p * stride.
    const int64_t first = place < t.length ? 0 : (place - t.length) / t.stride + 1;
    const int64_t last = std::min(place / t.stride, t.count - 1);
    for (int64_t k = 0; k < t.width; k += kLanes) {
      const __mmask16 mask = LastMask(t.width - k, 1);
      const float* from = t.from + first * t.step + (place - first * t.stride) * t.width + k;
      __m512 sum = _mm512_maskz_loadu_ps(mask, to + k);
      for (int64_t p = first; p <= last; ++p, from += t.step - t.stride * t.width) {
        sum += _mm512_maskz_loadu_ps(mask, from);
      }
      _mm512_mask_storeu_ps(to + k, mask, sum);
    }
  }
}

void AddOuterProducts(const GradientTiles& t) {
  ForTiles(RoundUpToLanes(t.columns) / kLanes, kMaxVectors, [&](int64_t v0, int64_t v1) {
    const int64_t vectors = v1 - v0, column = v0 * kLanes;
    const __mmask16 last = LastMask(t.columns - column, vectors);
    ForTiles(t.length, RowsFor(static_cast<int>(vectors)), [&](int64_t k0, int64_t k1) {
      kGradient[vectors - 1][k1 - k0 - 1](t, t.left.at + k0, t.right.at + column,
                                          t.g + k0 * t.g_step + column, last);
    });
  });
}

}  // namespace trainer::cpu
