#pragma once
// One direction of a convolution by one primitive of oneDNN: what library.cc chooses from.
// Each maker returns null where the library has no such kernel.

#include <memory>

#include "conv_kernels.h"

namespace trainer::cpu {

// How oneDNN sees x, y and their gradients.
enum class ConvLayout {
  kOurs,     // as the tensors have it
  kLibrary,  // as the library likes them, copied through scratch
  kFloat,    // the same, as f32
};
// The layout of a weight in memory: as Caffe's files have it, (M, C, kernel...), or (C, M,
// kernel...); the group comes first in both.
enum class WeightOrder { kOutputsFirst, kInputsFirst };

// `any_kernel` also takes the library's slow kernels by way of a matrix of patches ("gemm"), but
// never its reference loops.
std::unique_ptr<ConvForward> MakeOneDnnForward(const ConvDesc& desc, ConvLayout layout,
                                               bool any_kernel,
                                               WeightOrder order = WeightOrder::kOutputsFirst);
std::unique_ptr<ConvBackwardData> MakeOneDnnBackwardData(const ConvDesc& desc, ConvLayout layout,
                                                         bool any_kernel);
std::unique_ptr<ConvBackwardWeight> MakeOneDnnBackwardWeight(const ConvDesc& desc,
                                                             ConvLayout layout, bool any_kernel);

// The layouts that are tried for a direction, the likeliest first. kFloat alone where the library
// is known to compute a bf16 direction wrongly.
std::vector<ConvLayout> LayoutsForForward(const ConvDesc& desc);
std::vector<ConvLayout> LayoutsForData(const ConvDesc& desc);
std::vector<ConvLayout> LayoutsForWeight(const ConvDesc& desc);

}  // namespace trainer::cpu
