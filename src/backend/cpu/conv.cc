#include <algorithm>

#include "cpu/conv_steps.h"
#include "cpu/plans.h"
#include "trainer/base/error.h"
#include "trainer/base/text.h"

namespace trainer::cpu {
namespace {

class StepsConv final : public ConvPlan {
 public:
  StepsConv(const ConvDesc& desc, std::unique_ptr<ConvForward> forward,
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
  std::string Implementation() const override {
    return Join(forward_->Name(), " / ", data_->Name(), " / ", weight_->Name());
  }
  void Forward(ConstTensor x, const float* weight, const float* bias, Tensor y,
               std::span<std::byte> scratch) override {
    Expect("input", x, in_);
    Expect("output", y, out_);
    forward_->Run(x.data, weight, bias, y.data, scratch);
  }
  void BackwardWeight(ConstTensor x, ConstTensor dy, float* dweight, float* dbias,
                      std::span<std::byte> scratch) override {
    Expect("input", x, in_);
    Expect("output gradient", dy, out_);
    weight_->Run(x.data, dy.data, dweight, dbias, scratch);
  }
  void BackwardData(ConstTensor dy, const float* weight, Tensor dx,
                    std::span<std::byte> scratch) override {
    Expect("output gradient", dy, out_);
    Expect("input gradient", dx, in_);
    data_->Run(dy.data, weight, dx.data, scratch);
  }

 private:
  void Expect(const char* what, const ConstTensor& tensor, const Shape& shape) const {
    if (tensor.shape == shape && tensor.dtype == dtype_) return;
    throw Error(ErrorCode::kInternal,
                Join("convolution planned for an ", what, " of ", shape.ToString(), " ",
                     NameOf(dtype_), " got ", tensor.shape.ToString(), " ", NameOf(tensor.dtype)));
  }

  Shape in_, out_;
  DType dtype_;
  std::unique_ptr<ConvForward> forward_;
  std::unique_ptr<ConvBackwardData> data_;
  std::unique_ptr<ConvBackwardWeight> weight_;
};

// Images first as they lie, other ranks first in the library's layout: it has fast kernels for
// channels-last and blocked layouts only.
std::array<ConvLayout, 2> Layouts(const ConvDesc& desc) {
  if (desc.in.size() == 2) return {ConvLayout::kOurs, ConvLayout::kLibrary};
  return {ConvLayout::kLibrary, ConvLayout::kOurs};
}

// The first that takes it. The order is fixed and nothing is timed, so that two runs add in the
// same order.
template <class Step, class Maker>
std::unique_ptr<Step> FirstOneDnn(const ConvDesc& desc, Maker make) {
  for (const bool any_kernel : {false, true}) {
    for (const ConvLayout layout : Layouts(desc)) {
      if (auto step = make(desc, layout, any_kernel)) return step;
    }
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<ConvPlan> MakeConv(const ConvDesc& desc) {
  auto forward = FirstOneDnn<ConvForward>(desc, MakeOneDnnForward);
  std::unique_ptr<ConvBackwardData> data;
  if (desc.in.size() == 2) data = MakeTurnedBackwardData(desc);
  if (!data) data = FirstOneDnn<ConvBackwardData>(desc, MakeOneDnnBackwardData);
  auto weight = FirstOneDnn<ConvBackwardWeight>(desc, MakeOneDnnBackwardWeight);
  if (!forward || !data || !weight) return MakeReferenceConv(desc);
  return std::make_unique<StepsConv>(desc, std::move(forward), std::move(data), std::move(weight));
}

}  // namespace trainer::cpu
