#include "cpu/group_product.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cpu/simd.h"

namespace trainer::cpu {
namespace {

// Computes R rows and N vectors of y. The sums, two vectors of `right` and a broadcast are held in
// registers.
template <class V, int R, int N>
struct RowsOfProduct {
  static TRAINER_INLINE void Run(const GroupProduct* product, int64_t first) {
    using F = typename V::F;
    const GroupProduct t = *product;
    const float* add = t.add != nullptr ? t.add + first * t.add_step : nullptr;
    float* y = t.y + first * t.y_step;
    F sum[R][N];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      // `y` comes from memory if it is large.
      __builtin_prefetch(y + r * t.y_step);
#pragma GCC unroll 2
      for (int v = 0; v < N; ++v) sum[r][v] = F{};
    }
    const float *left = t.left + first, *right = t.right;
    const float* second = right + VectorAt<V>(N - 1, t.depth * kLanes);
#pragma GCC unroll 4
    for (int64_t i = 0; i < t.depth; ++i) {
      F d[2];
      V::LoadTo(d[0], right + i * kLanes);
      V::LoadTo(d[1], second + i * kLanes);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        F x;
        V::Broadcast(x, &left[i * kLanes + r]);
#pragma GCC unroll 2
        for (int v = 0; v < N; ++v) sum[r][v] += x * d[v];
      }
    }
    if (add != nullptr) {
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
        for (int v = 0; v < N; ++v) {
          F before;
          V::LoadTo(before, add + r * t.add_step + v * V::kLanes);
          sum[r][v] += before;
        }
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < N; ++v) V::StoreTo(y + r * t.y_step + v * V::kLanes, sum[r][v]);
    }
  }
};

using RowsCall = void (*)(const GroupProduct*, int64_t);

// Returns RowsOfProduct<V, R, N> for R = 1, 2, ..., by R - 1.
template <class V, int N, int... R>
constexpr std::array<RowsCall, sizeof...(R)> RowCalls(std::integer_sequence<int, R...>) {
  return {CompiledFor<V, RowsOfProduct<V, R + 1, N>, const GroupProduct*, int64_t>()...};
}

// Implements MultiplyGroup for N vectors of columns.
template <class V, int N>
void MultiplyVectors(const GroupProduct& t) {
  // AVX-512 has 32 registers, AVX2 has 16.
  constexpr int kMost = V::kLanes == 16 ? 16 / N : 6;
  static constexpr auto kCalls = RowCalls<V, N>(std::make_integer_sequence<int, kMost>{});
  const int64_t parts = (t.rows + kMost - 1) / kMost;
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t first = t.rows * part / parts, next = t.rows * (part + 1) / parts;
    kCalls[next - first - 1](&t, first);
  }
}

// Implements AddRows for vectors V.
template <class V, class T>
struct SumRows {
  static TRAINER_INLINE void Run(const T* from, int64_t rows, int64_t columns, float* sums) {
    constexpr int64_t kAtOnce = 128;  // small, because long float sums lose digits
    for (int64_t begin = 0; begin < rows; begin += kAtOnce) {
      const int64_t end = std::min(begin + kAtOnce, rows);
      int64_t c = 0;
      for (; c + V::kLanes <= columns; c += V::kLanes) {
        typename V::F sum{}, next, before;
        for (int64_t r = begin; r < end; ++r) {
          V::LoadTo(next, from + r * columns + c);
          sum += next;
        }
        V::LoadTo(before, sums + c);
        V::StoreTo(sums + c, before + sum);
      }
      for (; c < columns; ++c) {
        float sum = 0;
        for (int64_t r = begin; r < end; ++r) sum += Load(from[r * columns + c]);
        sums[c] += sum;
      }
    }
  }
};

}  // namespace

void MultiplyGroup(const GroupProduct& t) {
  WithWideLanes([&](auto lanes) {
    using V = typename decltype(lanes)::Type;
    if (t.columns == V::kLanes) return MultiplyVectors<V, 1>(t);
    MultiplyVectors<V, 2>(t);
  });
}

template <class T>
void AddRows(const T* from, int64_t rows, int64_t columns, float* sums) {
  WithWideLanes([=](auto lanes) {
    using V = typename decltype(lanes)::Type;
    CompiledFor<V, SumRows<V, T>, const T*, int64_t, int64_t, float*>()(from, rows, columns, sums);
  });
}
template void AddRows(const float*, int64_t, int64_t, float*);
template void AddRows(const BFloat16*, int64_t, int64_t, float*);

}  // namespace trainer::cpu
