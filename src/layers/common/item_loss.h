#pragma once

#include "common/checks.h"
#include "common/labels.h"
#include "common/loss_total.h"

namespace trainer {

// A loss over scores (N, C) and N labels: the mean of a number per item.
class ItemLoss : public Layer {
 public:
  explicit ItemLoss(const LayerSpec& spec) : spec_(spec), total_(1) {}

  void Describe(DescribeContext& plan) final {
    RequireF32(plan, spec_);
    RequireItemScores(plan, spec_);
    const Shape& in = plan.In(0);
    rule_.classes = in.Count(1);
    total_ = LossTotal(in[0]);
    plan.Out(0, {});
    plan.Workspace(sizeof(LossHead) + sizeof(float) * static_cast<size_t>(in[0]));
    plan.KeepInput(0);
    plan.KeepInput(1);
    plan.NoGradient(1);
  }
  void Forward(const RunContext& run) final {
    auto* head = reinterpret_cast<LossHead*>(run.Workspace().data());
    auto* loss = reinterpret_cast<float*>(head + 1);
    LossOfItems(run, loss);
    ReportBadLabels(run, rule_);
    total_.Forward(run.device(), loss, head, run.Out(0).f32());
  }
  void ThrowFault(const RunContext& run, int64_t at, float label) const final {
    ThrowBadLabel(spec_, run.In(1).shape, rule_, at, label);
  }

 protected:
  // loss[n], or kBadRow for a bad label.
  virtual void LossOfItems(const RunContext& run, float* loss) const = 0;
  const LabelRule& rule() const { return rule_; }

 private:
  LayerSpec spec_;
  LossTotal total_;
  LabelRule rule_;
};

}  // namespace trainer
