#pragma once
// The CPU's plans of families that have one implementation; for the others see candidates.h.

#include <memory>

#include "trainer/backend/batch_norm.h"
#include "trainer/backend/softmax.h"

namespace trainer::cpu {

std::unique_ptr<BatchNormPlan> MakeBatchNorm(const BatchNormDesc& desc);
std::unique_ptr<SoftmaxPlan> MakeSoftmax(const SoftmaxDesc& desc);

}  // namespace trainer::cpu
