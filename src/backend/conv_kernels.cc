#include "conv_kernels.h"

#include <algorithm>

#include "desc_checks.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// A convolution with one kernel for each direction. It checks the tensors before it calls the
// kernel.
class ConvOfKernels final : public ConvPrimitive {
 public:
  ConvOfKernels(const ConvDesc& desc, std::unique_ptr<ConvForward> forward,
                std::unique_ptr<ConvBackwardData> data, std::unique_ptr<ConvBackwardWeight> weight)
      : in_(desc.InShape()),
        out_(desc.OutShape()),
        dtype_(desc.dtype),
        forward_(std::move(forward)),
        data_(std::move(data)),
        weight_(std::move(weight)) {}

  size_t ScratchBytes() const override {
    return std::max({forward_->ScratchBytes(), data_->ScratchBytes(), weight_->ScratchBytes()});
  }
  // Returns the name of the forward kernel, and the names of the others if they differ.
  std::string kernel() const override {
    const std::string name = forward_->Name();
    if (data_->Name() == name && weight_->Name() == name) return name;
    return Join(name, ", data gradient ", data_->Name(), ", weight gradient ", weight_->Name());
  }
  // Returns the layout of the first direction that has one. All directions with the same layout
  // share the copy.
  std::optional<PackedLayout> packed_layout() const override {
    const std::optional<PackedLayout> forward = forward_->packed_layout();
    return forward ? forward : data_->packed_layout();
  }
  void UsePackedWeight(const void* copy, const bool* holds) override {
    const std::optional<PackedLayout> layout = packed_layout();
    if (forward_->packed_layout() == layout) forward_->UsePackedWeight(copy, holds);
    if (data_->packed_layout() == layout) data_->UsePackedWeight(copy, holds);
  }
  void AllowDroppedNan() override { forward_->AllowDroppedNan(); }
  void Forward(ConstTensor x, const float* weight, const float* bias, Tensor y,
               std::span<std::byte> scratch) override {
    ExpectPlanned("convolution (input)", in_, dtype_, x);
    ExpectPlanned("convolution (output)", out_, dtype_, y);
    CheckScratch(forward_->ScratchBytes(), scratch);
    forward_->Run(x.data, weight, bias, y.data, scratch);
  }
  void BackwardWeight(ConstTensor x, ConstTensor dy, float* dweight, float* dbias,
                      std::span<std::byte> scratch) override {
    ExpectPlanned("convolution (input)", in_, dtype_, x);
    ExpectPlanned("convolution (output gradient)", out_, dtype_, dy);
    CheckScratch(weight_->ScratchBytes(), scratch);
    weight_->Run(x.data, dy.data, dweight, dbias, scratch);
  }
  void BackwardData(ConstTensor dy, const float* weight, Tensor dx,
                    std::span<std::byte> scratch) override {
    ExpectPlanned("convolution (output gradient)", out_, dtype_, dy);
    ExpectPlanned("convolution (input gradient)", in_, dtype_, dx);
    CheckScratch(data_->ScratchBytes(), scratch);
    data_->Run(dy.data, weight, dx.data, scratch);
  }

 private:
  // Throws kInternal if the scratch is too small.
  static void CheckScratch(size_t needed, std::span<std::byte> scratch) {
    if (scratch.size() >= needed) return;
    throw Error(ErrorCode::kInternal,
                Join("convolution needs ", needed, " bytes of scratch and got ", scratch.size()));
  }

  Shape in_, out_;
  DType dtype_;
  std::unique_ptr<ConvForward> forward_;
  std::unique_ptr<ConvBackwardData> data_;
  std::unique_ptr<ConvBackwardWeight> weight_;
};

// Chooses one direction and appends the candidates that declined to `declined`.
template <class Step>
std::unique_ptr<Step> ChooseStep(const Device& device, const ConvDesc& desc, const char* direction,
                                 std::vector<std::string>* declined) {
  ChosenKernel<Step> chosen =
      KernelRegistry<ConvDesc, Step>::Get().Choose(device, desc, Join("convolution, ", direction));
  for (const std::string& line : chosen.declined) {
    declined->push_back(Join(direction, ": ", line));
  }
  return std::move(chosen.made);
}

}  // namespace

std::unique_ptr<ConvPrimitive> JoinConvKernels(const ConvDesc& desc,
                                               std::unique_ptr<ConvForward> forward,
                                               std::unique_ptr<ConvBackwardData> data,
                                               std::unique_ptr<ConvBackwardWeight> weight) {
  return std::make_unique<ConvOfKernels>(desc, std::move(forward), std::move(data),
                                         std::move(weight));
}

std::unique_ptr<ConvPrimitive> ChooseConv(const Device& device, const ConvDesc& desc) {
  std::vector<std::string> declined;
  auto forward = ChooseStep<ConvForward>(device, desc, "forward", &declined);
  auto data = ChooseStep<ConvBackwardData>(device, desc, "data gradient", &declined);
  auto weight = ChooseStep<ConvBackwardWeight>(device, desc, "weight gradient", &declined);
  auto plan = JoinConvKernels(desc, std::move(forward), std::move(data), std::move(weight));
  plan->set_skipped_kernels(std::move(declined));
  return plan;
}

}  // namespace trainer
