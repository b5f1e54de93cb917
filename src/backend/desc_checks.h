#pragma once
// The checks that every device runs before it creates a primitive: each throws kConfig and names
// the invalid number.

#include <string_view>

#include "trainer/backend/primitives/attention.h"
#include "trainer/backend/primitives/batch_norm.h"
#include "trainer/backend/primitives/conv.h"
#include "trainer/backend/primitives/gemm.h"
#include "trainer/backend/primitives/lrn.h"
#include "trainer/backend/primitives/pool.h"
#include "trainer/backend/primitives/softmax.h"

namespace trainer {

// Throws kConfig for a length below 1, or a sum into a 16-bit type.
void CheckGemm(const GemmDesc& desc);
// Throws kConfig for lengths out of range, channels that the groups do not divide, a kernel that
// does not fit into the padded input, and lengths from 2^31 on.
void CheckConv(const ConvDesc& desc);
// Throws kConfig for lengths out of range, and a pad that is as long as the kernel or longer.
void CheckPool(const PoolDesc& desc);
// Throws kConfig for a shape without channels, a negative eps, and `backward_from_output` if y is
// not z.
void CheckBatchNorm(const BatchNormDesc& desc);
// Throws kConfig for a shape without four axes, and a negative number of neighbours.
void CheckLrn(const LrnDesc& desc);
// Throws kConfig for an axis that the shape does not have.
void CheckSoftmax(const SoftmaxDesc& desc);
// Throws kConfig for a batch, a length, a number of heads or a size of a head below 1.
void CheckAttention(const AttentionDesc& desc);

// Throws kInternal if the shape or type of `tensor` differs from what `what` was planned for.
void ExpectPlanned(std::string_view what, const Shape& shape, DType dtype,
                   const ConstTensor& tensor);

}  // namespace trainer
