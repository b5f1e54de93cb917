#pragma once
// The form of weights that a primitive multiplies by.

#include <cstdint>

#include "trainer/base/divider.h"
#include "trainer/tensor/dtype.h"

namespace trainer {

// An array of f32 with the lengths (rows, a, b) becomes one with (rows, b, a) in `dtype`.
struct PackedLayout {
  DType dtype = DType::kF32;
  int64_t rows = 0, a = 1, b = 1;

  int64_t Count() const { return rows * a * b; }
  bool operator==(const PackedLayout&) const = default;
};

// Where a layout puts the elements of an array, prepared for many of them.
class PackedOrder {
 public:
  PackedOrder() = default;
  HD explicit PackedOrder(const PackedLayout& layout)
      : a_(static_cast<uint32_t>(layout.a)), b_(static_cast<uint32_t>(layout.b)) {}

  // Returns whether elements keep their order.
  HD bool IsSame() const { return a_.by() == 1 || b_.by() == 1; }
  // Returns the index in the packed copy of element i of the array.
  HD int64_t PackedIndex(int64_t i) const {
    return TransposedIndex(static_cast<uint32_t>(i), a_, b_);
  }

 private:
  Divider a_, b_;
};

}  // namespace trainer
