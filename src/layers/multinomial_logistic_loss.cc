#include "common/checks.h"
#include "common/labels.h"
#include "common/loss_total.h"
#include "trainer/backend/map.h"

namespace trainer {
namespace {

constexpr float kLeast = 1e-20f;  // Caffe's floor of a probability

struct NegativeLog {
  const float *p, *label;
  float* loss;
  LabelRule rule;
  HD void operator()(int64_t i) const {
    const int c = rule.Read(label[i]);
    if (c < 0) {
      loss[i] = kBadRow;
    } else {
      const float chosen = p[i * rule.classes + c];
      loss[i] = -logf(chosen < kLeast ? kLeast : chosen);
    }
  }
};

struct NegativeLogGradient {
  const float *p, *label, *weight;
  LabelRule rule;
  float scale;
  HD float operator()(int64_t i, float p_i) const {
    const int c = rule.Read(label[i / rule.classes]);
    if (i % rule.classes != c) return 0;
    return -*weight * scale / (p_i < kLeast ? kLeast : p_i);
  }
};

class MultinomialLogisticLoss final : public Layer {
 public:
  explicit MultinomialLogisticLoss(const LayerSpec& spec) : spec_(spec), total_(1) {}

  void Describe(DescribeContext& plan) override {
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
  void Forward(const RunContext& run) override {
    auto* head = reinterpret_cast<LossHead*>(run.Workspace().data());
    auto* loss = reinterpret_cast<float*>(head + 1);
    ForEach(run.device(), run.In(0).shape[0],
            NegativeLog{run.In(0).f32(), run.In(1).f32(), loss, rule_});
    ReportBadLabels(run, rule_);
    total_.Forward(run.device(), loss, head, run.Out(0).f32());
  }

  void ThrowFault(const RunContext& run, int64_t at, float label) const override {
    ThrowBadLabel(spec_, run.In(1).shape, rule_, at, label);
  }
  void Backward(const RunContext& run) override {
    const float scale = 1 / static_cast<float>(run.In(0).shape[0]);
    MapIndexed(
        run.device(),
        NegativeLogGradient{run.In(0).f32(), run.In(1).f32(), run.GradOut(0).f32(), rule_, scale},
        run.GradIn(0), run.In(0));
  }

 private:
  LayerSpec spec_;
  LossTotal total_;
  LabelRule rule_;
};

const RegisterLayer<MultinomialLogisticLoss> kMultinomialLogisticLoss(
    "MultinomialLogisticLoss",
    {.text = "-sum log p[label] / N, of probabilities p. With scores, use SoftmaxWithLoss.\n"
             "bottom 0: probabilities (N, C) (or more axes of 1 each), taken as 1e-20 at least. "
             "bottom 1: N labels, checked at every pass. The top is a scalar.",
     .param = "",
     .arity = {.min_in = 2, .max_in = 2}});

}  // namespace
}  // namespace trainer
