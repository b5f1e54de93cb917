#pragma once
// The GPU primitives of families with one implementation; for the others see kernel_registry.h. The
// device must outlive them.

#include <memory>

#include "trainer/backend/device/device.h"

namespace trainer::cuda {

std::unique_ptr<BatchNormPrimitive> NewBatchNorm(const Device& device, const BatchNormDesc& desc);
std::unique_ptr<SoftmaxPrimitive> NewSoftmax(const Device& device, const SoftmaxDesc& desc);
std::unique_ptr<AttentionPrimitive> NewAttention(const Device& device, const AttentionDesc& desc);

}  // namespace trainer::cuda
