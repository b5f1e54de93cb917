#pragma once
// One direction of a convolution with one oneDNN primitive; library.cc chooses among them. Each
// maker returns null if the library has no such kernel. For bf16 on processors without instructions
// for it, oneDNN's kernels are up to four times slower than those for f32, so there is none.

#include <array>
#include <memory>

#include "conv_kernels.h"

namespace trainer::cpu {

// The layout in which oneDNN gets x, y and their gradients.
enum class ConvLayout {
  kOurs,     // the tensors' own layout
  kLibrary,  // the library's preferred layout, copied through scratch
};
// The layout of a weight in memory: (M, C, kernel...) as in Caffe's files, or (C, M, kernel...).
// The group comes first in both.
enum class WeightOrder { kOutputsFirst, kInputsFirst };

// Makes the forward kernel; null if the library has none. `any_kernel` also accepts the library's
// slow kernels that use im2col ("gemm"), but never its reference loops.
std::unique_ptr<ConvForward> MakeOneDnnForward(const ConvDesc& desc, ConvLayout layout,
                                               bool any_kernel,
                                               WeightOrder order = WeightOrder::kOutputsFirst);
// Makes the kernel of the data gradient; null if the library has none that `any_kernel` allows.
std::unique_ptr<ConvBackwardData> MakeOneDnnBackwardData(const ConvDesc& desc, ConvLayout layout,
                                                         bool any_kernel);
// Makes the kernel of the weight gradient; null if the library has none that `any_kernel` allows.
std::unique_ptr<ConvBackwardWeight> MakeOneDnnBackwardWeight(const ConvDesc& desc,
                                                             ConvLayout layout, bool any_kernel);

// Returns the layouts to try, the most likely first. Images try our layout first, other ranks the
// library's, because it has fast kernels only for channels-last and blocked layouts.
std::array<ConvLayout, 2> LayoutsToTry(const ConvDesc& desc);

}  // namespace trainer::cpu
