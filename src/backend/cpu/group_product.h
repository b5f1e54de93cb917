#pragma once
// Products of packed operands for AVX-512 and AVX2: the innermost loops of BlockedProduct and of
// the weight gradient by Winograd's algorithm. The functions must be called only if HasWideLanes()
// (simd.h).

#include <cstdint>

namespace trainer::cpu {

inline constexpr int64_t kLanes = 16;  // floats in a cache line, and in the widest vector

inline int64_t RoundUpToLanes(int64_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

// Returns the offset of vector v in rows of groups of 16 floats, where the same row of the next
// group is `group` floats away.
template <class V>
constexpr int64_t VectorAt(int64_t v, int64_t group) {
  return v * V::kLanes / kLanes * group + v * V::kLanes % kLanes;
}

// MultiplyGroup computes
//   y[i, j] = add[i, j] + sum over t < depth of left[t, i] * right[t, j]
// for i < rows and j < columns. Both operands are stored in groups of 16 columns, [group][t][16];
// `left` is one group. `columns` is one or two vectors of the processor.
struct GroupProduct {
  const float *left, *right;
  int64_t depth;
  int64_t rows = kLanes;
  int64_t columns;
  const float* add;  // null for 0
  int64_t add_step;  // floats from add[i, j] to add[i + 1, j]
  float* y;
  int64_t y_step;  // floats from y[i, j] to y[i + 1, j]
};
// Computes y. See GroupProduct.
void MultiplyGroup(const GroupProduct& t);

// Computes sums[c] += sum over t < rows of from[t, c] for `columns` columns.
template <class T>
void AddRows(const T* from, int64_t rows, int64_t columns, float* sums);

}  // namespace trainer::cpu
