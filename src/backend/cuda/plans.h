#pragma once
// A GPU's plans of families that have one implementation; for the others see kernel_registry.h. The
// device must outlive its plans.

#include <memory>

#include "trainer/backend/device/device.h"

namespace trainer::cuda {

std::unique_ptr<BatchNormPrimitive> NewBatchNorm(const Device& device, const BatchNormDesc& desc);
std::unique_ptr<SoftmaxPrimitive> NewSoftmax(const Device& device, const SoftmaxDesc& desc);

}  // namespace trainer::cuda
