#pragma once
// The form of weights that a primitive multiplies by.

#include <cstdint>

#include "trainer/base/host_device.h"
#include "trainer/tensor/dtype.h"

namespace trainer {

// An array of f32 with the lengths (rows, a, b) becomes one with (rows, b, a) in `dtype`.
struct PackedLayout {
  DType dtype = DType::kF32;
  int64_t rows = 0, a = 1, b = 1;

  int64_t Count() const { return rows * a * b; }
  // Returns the index in the packed copy of element i of the array.
  HD int64_t PackedIndex(int64_t i) const {
    const auto at = static_cast<uint32_t>(i), first = static_cast<uint32_t>(a),
               second = static_cast<uint32_t>(b);
    const uint32_t rest = at / second;
    return (rest / first * second + at % second) * first + rest % first;
  }
  bool operator==(const PackedLayout&) const = default;
};

}  // namespace trainer
