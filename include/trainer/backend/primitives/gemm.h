#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trainer/backend/primitives/primitive.h"
#include "trainer/tensor/tensor.h"

namespace trainer {

// C (m, n) = op(A) (m, k) * op(B) (k, n) [+ C] [+ bias], all row-major. op transposes if the flag
// is set: A is then stored as (k, m), B as (n, k).
struct GemmDesc {
  int64_t m = 0, n = 0, k = 0;
  bool trans_a = false, trans_b = false;
  bool accumulate = false;        // add to C, which is then f32, instead of overwriting it
  bool bias = false;              // add bias (n) to each row
  DType dtype = DType::kF32;      // type of A and B
  DType out_dtype = DType::kF32;  // type of C
};

// Made by Device::NewGemm; used by one thread at a time.
class GemmPrimitive : public Primitive {
 public:
  virtual size_t ScratchBytes() const { return 0; }
  // `bias` may be null if the description has no bias.
  virtual void Run(const void* a, const void* b, const float* bias, void* c,
                   std::span<std::byte> scratch) = 0;
};

}  // namespace trainer
