#pragma once
// A small array that covers some axes of a tensor and repeats over the others, as Scale and Bias
// use it.

#include <cstdint>

#include "trainer/backend/loops/map_rows.h"
#include "trainer/tensor/tensor.h"

namespace trainer {

// Memory of the large tensor, split into digits: index = digit 0 + length 0 * (digit 1 + ...). The
// small array's element is the sum of digit * stride. Neighbouring axes are merged.
struct Broadcast {
  static constexpr int kMaxDigits = 8;
  int digits = 0;
  int64_t length[kMaxDigits] = {}, stride[kMaxDigits] = {};
  int64_t small_count = 1;

  // The element of the small array for a row of length[0] neighbours; they then step by stride[0].
  HD int64_t OfRow(int64_t row) const {
    int64_t at = 0;
    for (int d = 1; d < digits; ++d) {
      at += row % length[d] * stride[d];
      row /= length[d];
    }
    return at;
  }

  // The index in the large tensor of repetition `k` (0 .. repetitions - 1) of small element 0, and
  // of small element `at` itself; the sum of both is the index of `at`'s repetition.
  HD int64_t PlaceOf(int64_t index, bool covered) const {
    int64_t place = 0, step = 1;
    for (int d = 0; d < digits; ++d) {
      if ((stride[d] != 0) == covered) {
        // Covered digits count by their strides, which need not rise with the digits.
        const int64_t digit = covered ? index / stride[d] % length[d] : index % length[d];
        if (!covered) index /= length[d];
        place += digit * step;
      }
      step *= length[d];
    }
    return place;
  }
};

// The digits for `large` when a small array of shape `small` covers its axes from `axis` on. The
// small array is a parameter (row-major), or with `is_value` a tensor (NHWC when it has 4 axes).
// False when that takes more than kMaxDigits.
bool MakeBroadcast(const Shape& large, const Shape& small, int axis, bool is_value,
                   Broadcast* broadcast);

// y = x * scale + shift, either of which may be null (1 and 0).
void ScaleShift(const Device& device, const Broadcast& broadcast, const ConstTensor& x,
                const float* scale, const float* shift, const Tensor& y);

// to += the sum over all repetitions of dy * x; of dy where x is null.
void ReduceBroadcast(const Device& device, const Broadcast& broadcast, const ConstTensor& dy,
                     const ConstTensor* x, float* to);

}  // namespace trainer
