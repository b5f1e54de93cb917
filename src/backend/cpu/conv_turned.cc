#include <algorithm>

#include "cpu/conv_steps.h"
#include "trainer/backend/carve.h"
#include "trainer/backend/parallel_for.h"

namespace trainer::cpu {
namespace {

// The convolution whose forward pass is the data gradient of `desc`.
ConvDesc Turned(const ConvDesc& desc) {
  ConvDesc turned = desc;
  turned.in_channels = desc.out_channels;
  turned.out_channels = desc.in_channels;
  turned.in = desc.Out();
  turned.bias = turned.relu = false;
  for (size_t i = 0; i < desc.pad.size(); ++i) {
    turned.pad[i] = desc.dilation[i] * (desc.kernel[i] - 1) - desc.pad[i];
  }
  return turned;
}

// dy times the weight with its taps turned round and inputs and outputs exchanged. The taps are
// turned here, in the weight's own order (one tap needs none); the exchange is the library's.
class TurnedBackwardData final : public ConvBackwardData {
 public:
  TurnedBackwardData(const ConvDesc& desc, std::unique_ptr<ConvForward> forward)
      : forward_(std::move(forward)),
        area_(desc.WeightShape().Count(2)),
        kernels_(desc.WeightShape().Count() / area_),
        weight_bytes_(area_ == 1 ? 0 : AlignedBytes(kernels_ * area_ * sizeof(float))) {}

  std::string Name() const override { return forward_->Name() + " turned"; }
  size_t ScratchBytes() const override { return weight_bytes_ + forward_->ScratchBytes(); }
  void Run(const void* dy, const float* weight, void* dx, std::span<std::byte> scratch) override {
    const float* turned = weight;
    if (area_ > 1) {
      auto* const to = reinterpret_cast<float*>(scratch.data());
      ParallelRanges(kernels_, 1 + 16384 / area_, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          std::reverse_copy(weight + i * area_, weight + (i + 1) * area_, to + i * area_);
        }
      });
      turned = to;
    }
    forward_->Run(dy, turned, nullptr, dx, scratch.subspan(weight_bytes_));
  }

 private:
  std::unique_ptr<ConvForward> forward_;
  int64_t area_, kernels_;
  size_t weight_bytes_;
};

}  // namespace

std::unique_ptr<ConvBackwardData> MakeTurnedBackwardData(const ConvDesc& desc) {
  // Its last vector of outputs would be mostly empty.
  if (desc.in.size() != 2 || desc.in_channels / desc.group % 16 != 0) return nullptr;
  for (size_t i = 0; i < desc.pad.size(); ++i) {
    if (desc.stride[i] != 1 || desc.pad[i] > desc.dilation[i] * (desc.kernel[i] - 1)) {
      return nullptr;
    }
  }
  auto forward =
      MakeOneDnnForward(Turned(desc), ConvLayout::kOurs, false, WeightOrder::kInputsFirst);
  if (!forward) return nullptr;
  return std::make_unique<TurnedBackwardData>(desc, std::move(forward));
}

}  // namespace trainer::cpu
