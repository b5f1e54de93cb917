#pragma once

#include "conv_kernels.h"

namespace trainer::cpu {

// The data gradient as a forward convolution of dy with the weight's taps reversed and its inputs
// and outputs exchanged. Images, stride 1, a pad below the kernel's reach and channels in whole
// vectors only.
KernelOrReason<ConvBackwardData> TransposedBackwardDataOf(const ConvDesc& desc);

}  // namespace trainer::cpu
