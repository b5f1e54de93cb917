#pragma once

#include "common/checks.h"
#include "common/conv_geometry.h"
#include "common/merged_axes.h"
#include "trainer/backend/dropped_nan.h"
#include "trainer/backend/weight_copy.h"
#include "trainer/base/text/text.h"

namespace trainer {

// What a convolution and its transpose share: several bottoms of one shape with a top each, one
// plan, and copies of what the plan sees under another number of axes.
class ConvLayer : public Layer, public TakesWeightCopy, public MayDropNan {
 public:
  explicit ConvLayer(const LayerSpec& spec) : spec_(spec) {}

  void Prepare(PrepareContext& plan) final {
    conv_ = plan.device().MakeConv(desc_);
    if (may_drop_nan_) AllowDroppedNan();
    plan.Scratch(x_.Bytes() + y_.Bytes() + conv_->ScratchBytes());
  }
  std::optional<WeightForm> CopyForm() const final {
    const auto* const taker = dynamic_cast<TakesWeightCopy*>(conv_.get());
    return taker == nullptr ? std::nullopt : taker->CopyForm();
  }
  void UseWeightCopy(const void* copy, const bool* holds) final {
    dynamic_cast<TakesWeightCopy&>(*conv_).UseWeightCopy(copy, holds);
  }
  void AllowDroppedNan() final {
    may_drop_nan_ = true;
    if (auto* const conv = dynamic_cast<MayDropNan*>(conv_.get())) conv->AllowDroppedNan();
  }
  std::string Implementation() const final { return conv_->Implementation(); }
  std::vector<std::string> Declined() const final { return conv_->Declined(); }
  int64_t Macs() const final { return macs_; }

 protected:
  // The scratch: x and y where they are copied, then the plan's own.
  struct Buffers {
    std::byte *x, *y;
    std::span<std::byte> rest;
  };
  Buffers BuffersOf(const RunContext& run) const {
    const std::span<std::byte> scratch = run.Scratch();
    return {scratch.data(), scratch.data() + x_.Bytes(), scratch.subspan(x_.Bytes() + y_.Bytes())};
  }

  void RequirePairs(const DescribeContext& plan) const {
    if (plan.NumIn() != plan.NumOut()) {
      spec_.Fail(Join("has ", plan.NumIn(), " bottoms and ", plan.NumOut(),
                      " tops; give one top per bottom"));
    }
    RequireEqualShapes(plan, spec_);
  }

  // `desc` is the plan; it sees bottoms as `x` and tops as `y`, which are `out` to other layers.
  void DescribePairs(DescribeContext& plan, const ConvDesc& desc, const Shape& x, const Shape& y,
                     const Shape& out) {
    x_ = MergedAxes(plan.In(0), x, desc.dtype);
    y_ = MergedAxes(out, y, desc.dtype);
    for (int i = 0; i < plan.NumIn(); ++i) {
      plan.Out(i, out, plan.InType(i));
      plan.KeepInput(i);
    }
    macs_ = desc.Macs() * plan.NumIn();
    desc_ = desc;
  }

  // Whether pair i has no gradient, in which case the bottom's is made 0.
  static bool HasNoGradient(const RunContext& run, int i) {
    if (run.HasGradOut(i)) return false;
    if (run.WantsGradIn(i)) run.device().Zero(run.GradIn(i).data, run.GradIn(i).Bytes());
    return true;
  }

  LayerSpec spec_;
  MergedAxes x_, y_;
  ConvDesc desc_;
  std::unique_ptr<ConvPlan> conv_;

 private:
  int64_t macs_ = 0;
  bool may_drop_nan_ = false;
};

}  // namespace trainer
