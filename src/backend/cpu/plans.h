#pragma once
// The CPU primitives of families with one implementation; for the others see kernel_registry.h.

#include <memory>

#include "trainer/backend/primitives/attention.h"
#include "trainer/backend/primitives/batch_norm.h"
#include "trainer/backend/primitives/conv.h"
#include "trainer/backend/primitives/pool.h"
#include "trainer/backend/primitives/softmax.h"

namespace trainer::cpu {

std::unique_ptr<BatchNormPrimitive> NewBatchNorm(const BatchNormDesc& desc);
std::unique_ptr<SoftmaxPrimitive> NewSoftmax(const SoftmaxDesc& desc);
std::unique_ptr<AttentionPrimitive> NewAttention(const AttentionDesc& desc);
// See Device::NewPooledConvGradient.
std::unique_ptr<PooledConvGradient> NewPooledConvGradient(const ConvDesc& conv,
                                                          const PoolDesc& pool);

}  // namespace trainer::cpu
