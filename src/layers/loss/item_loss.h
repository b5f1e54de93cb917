#pragma once

#include "loss/loss_normalizer.h"
#include "shared/checks.h"
#include "shared/class_labels.h"

namespace trainer {

// Base class of a loss over scores (N, C) and N labels: the mean over the items of the losses that
// LossOfItems computes. A derived class also computes the gradient. Labels are checked in every
// pass.
class ItemLoss : public Layer {
 public:
  explicit ItemLoss(const LayerSpec& spec) : spec_(spec), total_(1) {}

  void Setup(SetupContext& ctx) final {
    RequireF32(ctx, spec_);
    RequireItemScores(ctx, spec_);
    const Shape& in = ctx.Input(0);
    rule_.classes = in.Count(1);
    total_ = LossNormalizer(in[0]);
    ctx.Output(0, {});
    ctx.Workspace(sizeof(LossAccumulators) + sizeof(float) * static_cast<size_t>(in[0]));
    ctx.SaveInput(0);
    ctx.SaveInput(1);
    ctx.NotDifferentiable(1);
  }
  void Forward(const RunContext& run) final {
    auto* head = reinterpret_cast<LossAccumulators*>(run.Workspace().data());
    auto* loss = reinterpret_cast<float*>(head + 1);
    LossOfItems(run, loss);
    ReportBadLabels(run, rule_);
    total_.Forward(run.device(), loss, head, run.Output(0).f32());
  }
  void ThrowInputError(const RunContext& run, int64_t at, float label) const final {
    ThrowBadLabel(spec_, run.Input(1).shape, rule_, at, label);
  }

 protected:
  // Writes the loss of each item n to loss[n], or kBadRow for a bad label.
  virtual void LossOfItems(const RunContext& run, float* loss) const = 0;
  const LabelRule& rule() const { return rule_; }

 private:
  LayerSpec spec_;
  LossNormalizer total_;
  LabelRule rule_;
};

}  // namespace trainer
