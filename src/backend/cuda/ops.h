#pragma once
// The GPU operations that need no primitive: see Device. Kernels are queued on the device's stream.

#include "trainer/backend/device/device.h"

namespace trainer::cuda {

// Implements Device::Copy.
void Copy(const Device& device, const CopyDesc& desc, const void* from, void* to);
// Implements Device::Convert.
void Convert(const Device& device, const ConstTensor& from, const Tensor& to);
// Implements Device::AddChannelSums.
void AddChannelSums(const Device& device, const ChannelSumsDesc& desc, const ConstTensor& x,
                    const ConstTensor* times, float* to);
// For channels that are adjacent in memory: see Device::ReluGradAndBiasGrad.
void ReluGradAndBiasGrad(const Device& device, const ChannelSumsDesc& desc, const ConstTensor& dy,
                         const ConstTensor& y, const Tensor& g, float* to);

}  // namespace trainer::cuda
