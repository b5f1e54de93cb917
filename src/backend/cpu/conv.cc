#include <algorithm>

#include "cpu/conv_depthwise.h"
#include "cpu/conv_segment.h"
#include "cpu/conv_steps.h"
#include "cpu/conv_winograd.h"
#include "cpu/plans.h"
#include "trainer/backend/parallel_for.h"
#include "trainer/base/error.h"
#include "trainer/base/text.h"

namespace trainer::cpu {
namespace {

// y = max(0, y); NaN stays.
void Rectify(const Tensor& y) {
  WithType(y.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    T* const at = y.As<T>();
    ParallelFor(
        y.Count(), [=](int64_t i) __attribute__((always_inline)) {
          const float v = Load(at[i]);
          Store(at[i], v <= 0 ? 0.0f : v);
        });
  });
}

class StepsConv final : public ConvPlan {
 public:
  StepsConv(const ConvDesc& desc, std::unique_ptr<ConvForward> forward,
            std::unique_ptr<ConvBackwardData> data, std::unique_ptr<ConvBackwardWeight> weight)
      : in_(desc.InShape()),
        out_(desc.OutShape()),
        dtype_(desc.dtype),
        rectify_(desc.relu && !forward->Rectifies()),
        forward_(std::move(forward)),
        data_(std::move(data)),
        weight_(std::move(weight)) {}

  size_t ScratchBytes() const override {
    return std::max({forward_->ScratchBytes(), data_->ScratchBytes(), weight_->ScratchBytes()});
  }
  std::string Implementation() const override {
    const std::string name = forward_->Name();
    if (data_->Name() == name && weight_->Name() == name) return name;
    return Join(name, ", data gradient ", data_->Name(), ", weight gradient ", weight_->Name());
  }
  void Forward(ConstTensor x, const float* weight, const float* bias, Tensor y,
               std::span<std::byte> scratch) override {
    Expect("input", x, in_);
    Expect("output", y, out_);
    CheckScratch(scratch);
    forward_->Run(x.data, weight, bias, y.data, scratch);
    if (rectify_) Rectify(y);
  }
  void BackwardWeight(ConstTensor x, ConstTensor dy, float* dweight, float* dbias,
                      std::span<std::byte> scratch) override {
    Expect("input", x, in_);
    Expect("output gradient", dy, out_);
    CheckScratch(scratch);
    weight_->Run(x.data, dy.data, dweight, dbias, scratch);
  }
  void BackwardData(ConstTensor dy, const float* weight, Tensor dx,
                    std::span<std::byte> scratch) override {
    Expect("output gradient", dy, out_);
    Expect("input gradient", dx, in_);
    CheckScratch(scratch);
    data_->Run(dy.data, weight, dx.data, scratch);
  }

 private:
  void CheckScratch(std::span<std::byte> scratch) const {
    if (scratch.size() >= ScratchBytes()) return;
    throw Error(ErrorCode::kInternal, Join("convolution needs ", ScratchBytes(),
                                           " bytes of scratch and got ", scratch.size()));
  }
  void Expect(const char* what, const ConstTensor& tensor, const Shape& shape) const {
    if (tensor.shape == shape && tensor.dtype == dtype_) return;
    throw Error(ErrorCode::kInternal,
                Join("convolution planned for an ", what, " of ", shape.ToString(), " ",
                     NameOf(dtype_), " got ", tensor.shape.ToString(), " ", NameOf(tensor.dtype)));
  }

  Shape in_, out_;
  DType dtype_;
  bool rectify_;
  std::unique_ptr<ConvForward> forward_;
  std::unique_ptr<ConvBackwardData> data_;
  std::unique_ptr<ConvBackwardWeight> weight_;
};

// Whether oneDNN 2.6.3 computes this wrongly in bf16, as comparing random shapes with the reference
// has shown: data gradients of 1 x 1 kernels with an odd number of outputs, and weight gradients
// with a stride where the kernel is as long as the unpadded input or longer.
bool WrongBf16Data(const ConvDesc& desc) {
  return desc.dtype == DType::kBF16 && desc.out_channels / desc.group % 2 != 0 &&
         std::all_of(desc.kernel.begin(), desc.kernel.end(), [](int64_t k) { return k == 1; });
}
bool WrongBf16Weight(const ConvDesc& desc) {
  for (size_t i = 0; i < desc.in.size() && desc.dtype == DType::kBF16; ++i) {
    const int64_t reach = desc.dilation[i] * (desc.kernel[i] - 1) + 1;
    if (desc.stride[i] > 1 && reach >= desc.in[i]) return true;
  }
  return false;
}

// Images first as they lie, other ranks first in the library's layout: it has fast kernels for
// channels-last and blocked layouts only.
std::vector<ConvLayout> Layouts(const ConvDesc& desc, bool wrong_bf16) {
  if (wrong_bf16) return {ConvLayout::kFloat};
  std::vector<ConvLayout> layouts = {ConvLayout::kLibrary, ConvLayout::kOurs};
  if (desc.in.size() == 2) std::swap(layouts[0], layouts[1]);
  if (desc.dtype != DType::kF32) layouts.push_back(ConvLayout::kFloat);
  return layouts;
}

// The first that takes it. The order is fixed and nothing is timed, so that two runs add in the
// same order.
template <class Step, class Maker>
std::unique_ptr<Step> FirstOneDnn(const ConvDesc& desc, Maker make, bool wrong_bf16) {
  for (const bool any_kernel : {false, true}) {
    for (const ConvLayout layout : Layouts(desc, wrong_bf16)) {
      if (auto step = make(desc, layout, any_kernel)) return step;
    }
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<ConvPlan> MakeConv(const ConvDesc& desc) {
  if (desc.in.size() > 3) return MakeReferenceConv(desc);
  if (DepthwiseTakes(desc)) {
    return std::make_unique<StepsConv>(desc, MakeDepthwiseForward(desc),
                                       MakeDepthwiseBackwardData(desc),
                                       MakeDepthwiseBackwardWeight(desc));
  }
  const bool own = SegmentTakes(desc);
  auto forward = own ? MakeSegmentForward(desc) : nullptr;
  const bool winograd = !own && WinogradTakes(desc);
  if (winograd && WinogradPays(WinogradShape(desc))) forward = MakeWinogradForward(desc);
  if (!forward)
    forward = FirstOneDnn<ConvForward>(
        desc, [](const auto&... how) { return MakeOneDnnForward(how...); }, false);
  auto data = own ? MakeSegmentBackwardData(desc) : nullptr;
  if (winograd && WinogradPays(WinogradShape(desc).Turned())) {
    data = MakeWinogradBackwardData(desc);
  }
  if (!data) data = MakePointwiseBackwardData(desc);
  if (!data) data = MakeTurnedBackwardData(desc);
  if (!data) {
    data = FirstOneDnn<ConvBackwardData>(desc, MakeOneDnnBackwardData, WrongBf16Data(desc));
  }
  auto weight = own ? MakeSegmentBackwardWeight(desc) : nullptr;
  if (winograd && WinogradWeightPays(WinogradShape(desc))) {
    weight = MakeWinogradBackwardWeight(desc);
  }
  if (!weight) weight = MakePointwiseBackwardWeight(desc);
  if (!weight) {
    weight = FirstOneDnn<ConvBackwardWeight>(desc, MakeOneDnnBackwardWeight, WrongBf16Weight(desc));
  }
  if (!forward || !data || !weight) return MakeReferenceConv(desc);
  return std::make_unique<StepsConv>(desc, std::move(forward), std::move(data), std::move(weight));
}

}  // namespace trainer::cpu
