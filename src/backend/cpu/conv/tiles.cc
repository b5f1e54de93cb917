#include "cpu/conv/tiles.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cpu/simd.h"

namespace trainer::cpu {
namespace {

// The register blocking for vectors of L floats: the accumulators, a vector of the right operand
// for each column of accumulators, and a broadcast must fit into the registers, which are 32 with
// AVX-512 and 16 with AVX2.
template <int L>
struct TileBlocking {
  static constexpr int kMaxVectors = 3;
  // Returns how many rows a tile of this many vectors may have.
  static constexpr int Rows(int vectors) {
    if (L == 16) return vectors == 3 ? 8 : 12;
    return 12 / vectors;
  }
  static constexpr int kDotRows = L == 16 ? 4 : 3;
  static constexpr int kDotColumns = L == 16 ? 4 : 3;
};

// Returns the number of vectors that `columns` floats need.
template <class V>
int64_t VectorsFor(int64_t columns) {
  return (columns + V::kLanes - 1) / V::kLanes;
}
// Returns how many lanes of the last of `vectors` vectors `columns` fill.
template <class V>
TRAINER_INLINE int64_t LastLanes(int64_t columns, int64_t vectors) {
  return std::min(columns - (vectors - 1) * V::kLanes, V::kLanes);
}

// Loads the first `lanes` lanes, which `mask` selects, of the last vector of a row.
template <class V>
TRAINER_INLINE void LoadLast(typename V::F& to, const float* from, const typename V::Mask& mask,
                             int64_t lanes) {
  if (V::kLanes == kLanes || lanes < V::kLanes) {
    V::LoadWhere(to, from, mask);
  } else {
    V::LoadTo(to, from);
  }
}

// Computes a tile of MultiplyPixels in registers: R pixels by N vectors of columns. Only
// `last_lanes` columns of the last vector are written.
template <class V, int R, int N>
struct TileMultiply {
  static TRAINER_INLINE void Run(const ProductTiles& t, const int64_t* pixel, const float* w,
                                 const float* bias, float* y, int64_t last_lanes) {
    using F = typename V::F;
    F sum[R][N];
    const float* x[R];
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) x[r] = t.x + pixel[r];
#pragma GCC unroll 12
    for (int v = 0; v < N; ++v) {
      F start{};
      if (bias != nullptr) V::LoadTo(start, bias + v * V::kLanes);
#pragma GCC unroll 12
      for (int r = 0; r < R; ++r) sum[r][v] = start;
    }
    typename V::Mask last;
    V::MaskFirst(last, last_lanes);
    if (t.add) {
#pragma GCC unroll 12
      for (int r = 0; r < R; ++r) {
#pragma GCC unroll 12
        for (int v = 0; v + 1 < N; ++v) V::LoadTo(sum[r][v], y + r * t.y_pixel + v * V::kLanes);
        LoadLast<V>(sum[r][N - 1], y + r * t.y_pixel + (N - 1) * V::kLanes, last, last_lanes);
      }
    }
    const int64_t *tap = t.tap, *end = t.tap + t.taps;
    for (const int64_t step = t.w_step; tap != end; ++tap, w += step) {
      const int64_t at = *tap;
      F right[N];
#pragma GCC unroll 12
      for (int v = 0; v < N; ++v) V::LoadTo(right[v], w + v * V::kLanes);
#pragma GCC unroll 12
      for (int r = 0; r < R; ++r) {
        F left;
        V::Broadcast(left, &x[r][at]);
#pragma GCC unroll 12
        for (int v = 0; v < N; ++v) sum[r][v] += left * right[v];
      }
    }
    const int64_t y_pixel = t.y_pixel;
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r, y += y_pixel) {
#pragma GCC unroll 12
      for (int v = 0; v + 1 < N; ++v) V::StoreTo(y + v * V::kLanes, sum[r][v]);
      V::StoreFirst(y + (N - 1) * V::kLanes, sum[r][N - 1], last_lanes);
    }
  }
};

// Computes a tile of DotPixels in registers: R pixels by T columns, with a partial sum per lane.
template <class V, int R, int T>
struct DotTile {
  static TRAINER_INLINE void Run(const DotTiles& t, const int64_t* pixel, const float* w,
                                 const float* bias, float* y) {
    using F = typename V::F;
    F sum[R][T];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int j = 0; j < T; ++j) sum[r][j] = F{};
    }
    const int64_t wide = RoundUpToLanes(t.length);
    const int64_t read = (t.length + V::kLanes - 1) / V::kLanes * V::kLanes;
    typename V::Mask all, last;
    V::MaskFirst(all, V::kLanes);
    V::MaskFirst(last, t.length - (read - V::kLanes));
    for (int64_t i = 0; i < t.rows; ++i, w += t.columns * wide) {
      for (int64_t k = 0; k < read; k += V::kLanes) {
        const typename V::Mask mask = k + V::kLanes < read ? all : last;
        F right[T];
#pragma GCC unroll 4
        for (int j = 0; j < T; ++j) V::LoadTo(right[j], w + j * wide + k);
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
          F left;
          V::LoadWhere(left, t.x + pixel[r] + i * t.x_row + k, mask);
#pragma GCC unroll 4
          for (int j = 0; j < T; ++j) sum[r][j] += left * right[j];
        }
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int j = 0; j < T; ++j) {
        y[r * t.y_pixel + j] = V::Sum(sum[r][j]) + (bias != nullptr ? bias[j] : 0.0f);
      }
    }
  }
};

// Computes a tile of AddOuterProducts in registers: adds the sum over all positions to R rows by N
// vectors of g. Only `last_lanes` columns of the last vector of `right` are read, which is not
// padded; rows of g are padded and are read and written as whole vectors.
template <class V, int R, int N>
struct GradientTile {
  static TRAINER_INLINE void Run(const GradientTiles& t, const float* left_at,
                                 const float* right_at, float* g, int64_t last_lanes) {
    using F = typename V::F;
    typename V::Mask last;
    V::MaskFirst(last, last_lanes);
    F sum[R][N];
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 12
      for (int v = 0; v < N; ++v) V::LoadTo(sum[r][v], g + r * t.g_step + v * V::kLanes);
    }
    const int64_t left_step = t.left.pixel, right_step = t.right.pixel;
    for (int64_t image = 0; image < t.images; ++image) {
      const float* left_line = left_at + image * t.left.image;
      const float* right_line = right_at + image * t.right.image;
      for (int64_t line = 0; line < t.lines; ++line) {
        const float *from = left_line, *to = right_line;
        for (int64_t p = 0; p < t.pixels; ++p, from += left_step, to += right_step) {
          F right[N];
#pragma GCC unroll 12
          for (int v = 0; v + 1 < N; ++v) V::LoadTo(right[v], to + v * V::kLanes);
          V::LoadWhere(right[N - 1], to + (N - 1) * V::kLanes, last);
#pragma GCC unroll 12
          for (int r = 0; r < R; ++r) {
            F left;
            V::Broadcast(left, &from[r]);
#pragma GCC unroll 12
            for (int v = 0; v < N; ++v) sum[r][v] += left * right[v];
          }
        }
        left_line += t.left.line;
        right_line += t.right.line;
      }
    }
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 12
      for (int v = 0; v < N; ++v) V::StoreTo(g + r * t.g_step + v * V::kLanes, sum[r][v]);
    }
  }
};

using MultiplyCall = void (*)(const ProductTiles&, const int64_t*, const float*, const float*,
                              float*, int64_t);
using GradientCall = void (*)(const GradientTiles&, const float*, const float*, float*, int64_t);
using DotCall = void (*)(const DotTiles&, const int64_t*, const float*, const float*, float*);

// Returns TileMultiply<V, R, N> for R = 1, 2, ..., by R - 1.
template <class V, int N, int... R>
constexpr auto TileMultiplyRow(std::integer_sequence<int, R...>) {
  return std::array<MultiplyCall, 12>{
      CompiledFor<V, TileMultiply<V, R + 1, N>, const ProductTiles&, const int64_t*, const float*,
                  const float*, float*, int64_t>()...};
}
// Returns GradientTile<V, R, N> for R = 1, 2, ..., by R - 1.
template <class V, int N, int... R>
constexpr auto GradientRow(std::integer_sequence<int, R...>) {
  return std::array<GradientCall, 12>{
      CompiledFor<V, GradientTile<V, R + 1, N>, const GradientTiles&, const float*, const float*,
                  float*, int64_t>()...};
}
// Returns DotTile<V, R, T> for R = 1, 2, ..., by R - 1.
template <class V, int T, int... R>
constexpr auto DotRow(std::integer_sequence<int, R...>) {
  return std::array<DotCall, sizeof...(R)>{
      CompiledFor<V, DotTile<V, R + 1, T>, const DotTiles&, const int64_t*, const float*,
                  const float*, float*>()...};
}

// The kernels for the vectors V, by vectors or columns - 1 and by rows - 1.
template <class V>
struct TileKernels {
  using Blocking = TileBlocking<V::kLanes>;
  template <int N>
  static constexpr auto kRows = std::make_integer_sequence<int, Blocking::Rows(N)>{};
  static constexpr auto kDots = std::make_integer_sequence<int, Blocking::kDotRows>{};
  static constexpr std::array kMultiply = {TileMultiplyRow<V, 1>(kRows<1>),
                                           TileMultiplyRow<V, 2>(kRows<2>),
                                           TileMultiplyRow<V, 3>(kRows<3>)};
  static constexpr std::array kGradient = {GradientRow<V, 1>(kRows<1>), GradientRow<V, 2>(kRows<2>),
                                           GradientRow<V, 3>(kRows<3>)};
  static constexpr std::array kDot = {DotRow<V, 1>(kDots), DotRow<V, 2>(kDots), DotRow<V, 3>(kDots),
                                      DotRow<V, Blocking::kDotColumns>(kDots)};
  static_assert(kMultiply.size() == Blocking::kMaxVectors && kDot.size() >= Blocking::kDotColumns);
};

// Implements MultiplyPixels.
template <class V>
void MultiplyTiles(const ProductTiles& t, int64_t pixels) {
  using Blocking = TileBlocking<V::kLanes>;
  ForTiles(VectorsFor<V>(t.columns), Blocking::kMaxVectors, [&](int64_t v0, int64_t v1) {
    const int64_t vectors = v1 - v0, column = v0 * V::kLanes;
    const int64_t last = LastLanes<V>(t.columns - column, vectors);
    const float* bias = t.bias != nullptr ? t.bias + column : nullptr;
    ForTiles(pixels, Blocking::Rows(static_cast<int>(vectors)), [&](int64_t p0, int64_t p1) {
      TileKernels<V>::kMultiply[vectors - 1][p1 - p0 - 1](t, t.pixel + p0, t.w + column, bias,
                                                          t.y + p0 * t.y_pixel + column, last);
    });
  });
}

// Implements DotPixels.
template <class V>
void MultiplyDots(const DotTiles& t, int64_t pixels) {
  using Blocking = TileBlocking<V::kLanes>;
  const int64_t wide = RoundUpToLanes(t.length);
  ForTiles(t.columns, Blocking::kDotColumns, [&](int64_t j0, int64_t j1) {
    const float* bias = t.bias != nullptr ? t.bias + j0 : nullptr;
    ForTiles(pixels, Blocking::kDotRows, [&](int64_t p0, int64_t p1) {
      TileKernels<V>::kDot[j1 - j0 - 1][p1 - p0 - 1](t, t.pixel + p0, t.w + j0 * wide, bias,
                                                     t.y + p0 * t.y_pixel + j0);
    });
  });
}

// Implements AddOuterProducts.
template <class V>
void AddGradientTiles(const GradientTiles& t) {
  using Blocking = TileBlocking<V::kLanes>;
  ForTiles(VectorsFor<V>(t.columns), Blocking::kMaxVectors, [&](int64_t v0, int64_t v1) {
    const int64_t vectors = v1 - v0, column = v0 * V::kLanes;
    const int64_t last = LastLanes<V>(t.columns - column, vectors);
    ForTiles(t.length, Blocking::Rows(static_cast<int>(vectors)), [&](int64_t k0, int64_t k1) {
      TileKernels<V>::kGradient[vectors - 1][k1 - k0 - 1](t, t.left.at + k0, t.right.at + column,
                                                          t.g + k0 * t.g_step + column, last);
    });
  });
}

// Implements AddOverlapping.
template <class V>
struct AddSegments {
  static TRAINER_INLINE void Run(const OverlappingSegments& t, float* to) {
    for (int64_t place = 0; place < (t.count - 1) * t.stride + t.length; ++place, to += t.width) {
      // In segment p, this is group number place - p * stride.
      const int64_t first = place < t.length ? 0 : (place - t.length) / t.stride + 1;
      const int64_t last = std::min(place / t.stride, t.count - 1);
      for (int64_t k = 0; k < t.width; k += V::kLanes) {
        const int64_t lanes = LastLanes<V>(t.width - k, 1);
        typename V::Mask mask;
        V::MaskFirst(mask, lanes);
        const float* from = t.from + first * t.step + (place - first * t.stride) * t.width + k;
        typename V::F sum, next;
        LoadLast<V>(sum, to + k, mask, lanes);
        for (int64_t p = first; p <= last; ++p, from += t.step - t.stride * t.width) {
          V::LoadWhere(next, from, mask);
          sum += next;
        }
        V::StoreFirst(to + k, sum, lanes);
      }
    }
  }
};

}  // namespace

void MultiplyPixels(const ProductTiles& t, int64_t pixels) {
  WithWideLanes([&](auto lanes) { MultiplyTiles<typename decltype(lanes)::Type>(t, pixels); });
}

void DotPixels(const DotTiles& t, int64_t pixels) {
  WithWideLanes([&](auto lanes) { MultiplyDots<typename decltype(lanes)::Type>(t, pixels); });
}

void AddOuterProducts(const GradientTiles& t) {
  WithWideLanes([&](auto lanes) { AddGradientTiles<typename decltype(lanes)::Type>(t); });
}

void AddOverlapping(const OverlappingSegments& t, float* to) {
  WithWideLanes([&](auto lanes) {
    using V = typename decltype(lanes)::Type;
    CompiledFor<V, AddSegments<V>, const OverlappingSegments&, float*>()(t, to);
  });
}

int64_t TailColumns(int64_t columns, int64_t rows, int64_t length) {
  // Costs are in vector operations per pixel: dot products and the sums across their lanes, against
  // the products with a nearly empty vector of columns.
  const int64_t lanes = LanesFor(kLanes), tail = columns % lanes;
  const int64_t dots = tail * (rows * ((length + lanes - 1) / lanes) + 10);
  return dots * 3 < rows * length * 2 ? tail : 0;
}

}  // namespace trainer::cpu
