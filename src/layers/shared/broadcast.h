#pragma once
// A small array that covers some axes of a tensor and repeats over the others, as in Scale and
// Bias.

#include <cstdint>

#include "trainer/backend/loops/map_rows.h"
#include "trainer/tensor/tensor.h"

namespace trainer {

// Describes the large tensor's memory as digits: index = digit 0 + length 0 * (digit 1 + ...). The
// index in the small array is the sum of digit * stride. Neighbouring axes are merged.
struct Broadcast {
  static constexpr int kMaxDigits = 8;
  int digits = 0;
  int64_t length[kMaxDigits] = {}, stride[kMaxDigits] = {};
  int64_t small_count = 1;

  // Returns the index in the small array at the start of a row of length[0] neighbours, which
  // advance by stride[0].
  HD int64_t OfRow(int64_t row) const {
    int64_t at = 0;
    for (int d = 1; d < digits; ++d) {
      at += row % length[d] * stride[d];
      row /= length[d];
    }
    return at;
  }

  // Returns the index in the large tensor of the first repetition of small element `index`.
  HD int64_t PlaceOf(int64_t index) const {
    int64_t place = 0, step = 1;
#pragma unroll 1  // this runs once for many elements
    for (int d = 0; d < digits; ++d) {
      // The digit follows from its stride; the strides need not increase with the digits.
      if (stride[d] != 0) place += index / stride[d] % length[d] * step;
      step *= length[d];
    }
    return place;
  }
};

// Computes the digits for `large` if a small array of shape `small` covers its axes from `axis` on.
// These axes must have the lengths of `small`. The small array is a parameter (row-major) or, with
// `is_value`, a tensor (NHWC if it has 4 axes). Returns false if it needs more than kMaxDigits.
bool MakeBroadcast(const Shape& large, const Shape& small, int axis, bool is_value,
                   Broadcast* broadcast);

// y = x * scale + shift. Either may be null (1 and 0).
void ScaleShift(const Device& device, const Broadcast& broadcast, const ConstTensor& x,
                const float* scale, const float* shift, const Tensor& y);

// to += the sum over all repetitions of dy * x, or of dy if x is null.
void ReduceBroadcast(const Device& device, const Broadcast& broadcast, const ConstTensor& dy,
                     const ConstTensor* x, float* to);

}  // namespace trainer
