#pragma once

#include "conv_kernels.h"

namespace trainer::cpu {

// Computes the data gradient as a forward convolution of dy with the weight's taps reversed and its
// inputs and outputs exchanged. Supports images with stride 1, a pad below the kernel's extent and
// channels in whole vectors.
KernelOrReason<ConvBackwardData> TransposedBackwardDataOf(const ConvDesc& desc);

}  // namespace trainer::cpu
