#pragma once

#include <cstddef>
#include <cstdint>

#include "trainer/tensor/shape.h"

namespace trainer {

// A copy of an array whose strides differ between source and target:
//   to[sum of i_a * to_step_a] = from[sum of i_a * from_step_a]  for all i_a in [0, length_a).
// Lengths and steps are in elements; both arrays start at the pointers given to Device::Copy.
// Joined and cut-out blocks, windows, transposed matrices and permuted axes have this form. The two
// arrays must not overlap.
struct CopyDesc {
  static constexpr int kMaxAxes = Shape::kMaxAxes;

  size_t element_bytes = sizeof(float);
  // Bytes written by the whole operation that this copy is a part of. Large outputs are written
  // with stores that bypass the caches.
  int64_t written_bytes = 0;
  int axes = 0;  // outermost first
  int64_t length[kMaxAxes] = {}, from_step[kMaxAxes] = {}, to_step[kMaxAxes] = {};

  explicit CopyDesc(size_t size = sizeof(float)) : element_bytes(size) {}

  // Adds an axis inside the existing ones. Merges it with the axis outside it if the two are
  // contiguous in both arrays, so that few axes remain.
  CopyDesc& Axis(int64_t count, int64_t from, int64_t to) {
    if (count == 1) return *this;
    const int last = axes - 1;
    if (last >= 0 && from_step[last] == count * from && to_step[last] == count * to) {
      length[last] *= count;
      from_step[last] = from;
      to_step[last] = to;
      return *this;
    }
    length[axes] = count;
    from_step[axes] = from;
    to_step[axes++] = to;
    return *this;
  }

  // Returns the number of elements that are copied.
  int64_t Count() const {
    int64_t count = 1;
    for (int a = 0; a < axes; ++a) count *= length[a];
    return count;
  }
};

// Describes a copy of `count` blocks of `block` neighbouring elements; the steps lead from the
// start of one block to the next.
inline CopyDesc BlockCopy(size_t element_bytes, int64_t count, int64_t block, int64_t from_step,
                          int64_t to_step) {
  return CopyDesc(element_bytes).Axis(count, from_step, to_step).Axis(block, 1, 1);
}

}  // namespace trainer
