#pragma once
// A GPU's plans of families that have one implementation; for the others see candidates.h. The
// device must outlive its plans.

#include <memory>

#include "trainer/backend/device.h"

namespace trainer::cuda {

std::unique_ptr<BatchNormPlan> MakeBatchNorm(const Device& device, const BatchNormDesc& desc);
std::unique_ptr<SoftmaxPlan> MakeSoftmax(const Device& device, const SoftmaxDesc& desc);

}  // namespace trainer::cuda
