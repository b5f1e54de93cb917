#pragma once
// The checks that every device runs before it creates a primitive: each throws kConfig and names
// the invalid number.

#include <string_view>

#include "trainer/backend/primitives/batch_norm.h"
#include "trainer/backend/primitives/conv.h"
#include "trainer/backend/primitives/gemm.h"
#include "trainer/backend/primitives/lrn.h"
#include "trainer/backend/primitives/pool.h"
#include "trainer/backend/primitives/softmax.h"

namespace trainer {

void CheckGemm(const GemmDesc& desc);
void CheckConv(const ConvDesc& desc);
void CheckPool(const PoolDesc& desc);
void CheckBatchNorm(const BatchNormDesc& desc);
void CheckLrn(const LrnDesc& desc);
void CheckSoftmax(const SoftmaxDesc& desc);

// Throws kInternal if the shape or type of `tensor` differs from what `what` was planned for.
void ExpectPlanned(std::string_view what, const Shape& shape, DType dtype,
                   const ConstTensor& tensor);

}  // namespace trainer
