#pragma once

#include "conv_kernels.h"

namespace trainer::cpu {

// Computes the data gradient of a 1 x 1 convolution as a product in our own AVX2 loops. Supports
// images without stride, groups and padding.
KernelOrReason<ConvBackwardData> OwnPointwiseDataOf(const ConvDesc& desc);

}  // namespace trainer::cpu
