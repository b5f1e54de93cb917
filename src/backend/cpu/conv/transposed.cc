// The data gradient of a convolution as the forward pass of another convolution, over dy, with the
// weight's taps reversed and its inputs and outputs exchanged. oneDNN's forward kernels are up to a
// half faster than its backward kernels.

#include "cpu/conv/transposed.h"

#include <algorithm>

#include "cpu/conv/onednn_kernels.h"
#include "trainer/backend/loops/parallel_for.h"
#include "trainer/backend/memory/scratch_layout.h"

namespace trainer::cpu {
namespace {

// Returns the convolution whose forward pass is the data gradient of `desc`.
ConvDesc Transposed(const ConvDesc& desc) {
  ConvDesc transposed = desc;
  transposed.in_channels = desc.out_channels;
  transposed.out_channels = desc.in_channels;
  transposed.in = desc.Out();
  transposed.bias = transposed.relu = false;
  for (size_t i = 0; i < desc.pad.size(); ++i) {
    transposed.pad[i] = desc.dilation[i] * (desc.kernel[i] - 1) - desc.pad[i];
  }
  return transposed;
}

// This class reverses the taps in the weight's own order (a single tap needs no reversal). The
// strides given to the library for the weight exchange inputs and outputs.
class TransposedBackwardData final : public ConvBackwardData {
 public:
  TransposedBackwardData(const ConvDesc& desc, std::unique_ptr<ConvForward> forward)
      : forward_(std::move(forward)),
        area_(desc.WeightShape().Count(2)),
        kernels_(desc.WeightShape().Count() / area_),
        weight_bytes_(area_ == 1 ? 0 : AlignedBytes(kernels_ * area_ * sizeof(float))) {}

  std::string Name() const override { return forward_->Name() + " transposed"; }
  size_t ScratchBytes() const override { return weight_bytes_ + forward_->ScratchBytes(); }
  void Run(const void* dy, const float* weight, void* dx, std::span<std::byte> scratch) override {
    const float* reversed = weight;
    if (area_ > 1) {
      auto* const to = reinterpret_cast<float*>(scratch.data());
      ParallelRanges(kernels_, 1 + 16384 / area_, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          std::reverse_copy(weight + i * area_, weight + (i + 1) * area_, to + i * area_);
        }
      });
      reversed = to;
    }
    forward_->Run(dy, reversed, nullptr, dx, scratch.subspan(weight_bytes_));
  }

 private:
  std::unique_ptr<ConvForward> forward_;
  int64_t area_, kernels_;
  size_t weight_bytes_;
};

// Accepts what TransposedBackwardDataOf accepts.
KernelOrReason<ConvBackwardData> TakeTransposed(const Device&, const ConvDesc& desc) {
  return TransposedBackwardDataOf(desc);
}

const RegisterConvKernel<ConvBackwardData> kConvTransposedData(
    {DeviceKind::kCpu, priority::kOwn + 40, "onednn transposed", TakeTransposed});

}  // namespace

KernelOrReason<ConvBackwardData> TransposedBackwardDataOf(const ConvDesc& desc) {
  if (desc.in.size() != 2) return Unsupported{"it supports images only"};
  if (desc.in_channels / desc.group % 16 != 0) {
    return Unsupported{"the last vector of input channels would be mostly empty"};
  }
  for (size_t i = 0; i < desc.pad.size(); ++i) {
    if (desc.stride[i] != 1) return Unsupported{"the stride is not 1"};
    if (desc.pad[i] > desc.dilation[i] * (desc.kernel[i] - 1)) {
      return Unsupported{"the pad is larger than the reach of the kernel"};
    }
  }
  auto forward =
      MakeOneDnnForward(Transposed(desc), ConvLayout::kOurs, false, WeightOrder::kInputsFirst);
  if (!forward) return Unsupported{"oneDNN has no fast forward kernel for channels that come last"};
  return std::make_unique<TransposedBackwardData>(desc, std::move(forward));
}

}  // namespace trainer::cpu
