#pragma once
// The CPU operations that need no primitive: see Device.

#include "trainer/backend/primitives/channel_sums.h"
#include "trainer/backend/primitives/strided_copy.h"

namespace trainer::cpu {

// Implements Device::Copy.
void Copy(const CopyDesc& desc, const void* from, void* to);
// Implements Device::Convert.
void Convert(const ConstTensor& from, const Tensor& to);
// Implements Device::AddChannelSums.
void AddChannelSums(const ChannelSumsDesc& desc, const ConstTensor& x, const ConstTensor* times,
                    float* to);

}  // namespace trainer::cpu
