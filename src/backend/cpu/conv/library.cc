// oneDNN as a candidate for each direction of a convolution.

#include <algorithm>

#include "cpu/conv/onednn_kernels.h"

namespace trainer::cpu {
namespace {

// Returns whether oneDNN 2.6.3 computes the data gradient wrongly in bf16, as comparisons of random
// shapes with the reference have shown: it fails for 1 x 1 kernels with an odd number of outputs.
bool WrongBf16Data(const ConvDesc& desc) {
  return desc.dtype == DType::kBF16 && desc.out_channels / desc.group % 2 != 0 &&
         std::all_of(desc.kernel.begin(), desc.kernel.end(), [](int64_t k) { return k == 1; });
}
// Returns whether oneDNN 2.6.3 computes the weight gradient wrongly in bf16: it fails with a stride
// if the kernel is as long as the unpadded input or longer.
bool WrongBf16Weight(const ConvDesc& desc) {
  for (size_t i = 0; i < desc.in.size() && desc.dtype == DType::kBF16; ++i) {
    const int64_t reach = desc.dilation[i] * (desc.kernel[i] - 1) + 1;
    if (desc.stride[i] > 1 && reach >= desc.in[i]) return true;
  }
  return false;
}

// Returns the first kernel that supports one of the layouts. A kernel that uses im2col is the last
// choice.
template <class Step, class Maker>
KernelOrReason<Step> FirstKernel(const ConvDesc& desc, const Maker& make) {
  if (desc.in.size() > 3) {
    return Unsupported{Join("it supports up to 3 spatial axes, not ", desc.in.size())};
  }
  for (const bool any_kernel : {false, true}) {
    for (const ConvLayout layout : LayoutsToTry(desc)) {
      if (auto step = make(desc, layout, any_kernel)) return step;
    }
  }
  return Unsupported{"it has no compiled code for this"};
}

// Accepts every forward pass for which oneDNN has a kernel other than its reference loops.
KernelOrReason<ConvForward> TakeLibraryForward(const Device&, const ConvDesc& desc) {
  return FirstKernel<ConvForward>(desc,
                                  [](const auto&... how) { return MakeOneDnnForward(how...); });
}
// Accepts every data gradient for which oneDNN has a kernel other than its reference loops.
KernelOrReason<ConvBackwardData> TakeLibraryData(const Device&, const ConvDesc& desc) {
  if (WrongBf16Data(desc)) return Unsupported{"it computes this gradient wrongly in bf16"};
  return FirstKernel<ConvBackwardData>(desc, MakeOneDnnBackwardData);
}
// Accepts every weight gradient for which oneDNN has a kernel other than its reference loops.
KernelOrReason<ConvBackwardWeight> TakeLibraryWeight(const Device&, const ConvDesc& desc) {
  if (WrongBf16Weight(desc)) return Unsupported{"it computes this gradient wrongly in bf16"};
  return FirstKernel<ConvBackwardWeight>(desc, MakeOneDnnBackwardWeight);
}

const RegisterConvKernel<ConvForward> kConvLibraryForward({DeviceKind::kCpu, priority::kLibrary,
                                                           "onednn", TakeLibraryForward});
const RegisterConvKernel<ConvBackwardData> kConvLibraryData({DeviceKind::kCpu, priority::kLibrary,
                                                             "onednn", TakeLibraryData});
const RegisterConvKernel<ConvBackwardWeight> kConvLibraryWeight({DeviceKind::kCpu,
                                                                 priority::kLibrary, "onednn",
                                                                 TakeLibraryWeight});

}  // namespace

std::array<ConvLayout, 2> LayoutsToTry(const ConvDesc& desc) {
  std::array<ConvLayout, 2> layouts = {ConvLayout::kLibrary, ConvLayout::kOurs};
  if (desc.in.size() == 2) std::swap(layouts[0], layouts[1]);
  return layouts;
}

}  // namespace trainer::cpu
