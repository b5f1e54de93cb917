#include "checks.h"
#include "functions.h"
#include "labels.h"
#include "loss_total.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

constexpr float kMostLoss = 87.3365447f;  // -log(FLT_MIN): Caffe's floor of a probability

// One row: probabilities, and the loss log(sum_j exp(x_j)) - x_label. With smoothing, that share of
// the target is spread over all classes.
struct LossRow {
  const float *x, *label;
  float *prob, *loss;
  Rows rows;
  LabelRule rule;
  float smoothing;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = rows.Start(row.index), step = rows.inner;
    const float top = row.Max([&](int64_t i) { return x[at + i * step]; });
    const float sum = row.Sum([&](int64_t i) { return Exp(x[at + i * step] - top); });
    const float scale = 1 / sum;
    row.ForEach([&](int64_t i) { prob[at + i * step] = Exp(x[at + i * step] - top) * scale; });
    const float spread =
        smoothing > 0 ? row.Sum([&](int64_t i) { return x[at + i * step] - top; }) : 0.0f;
    row.Once([&] {
      const int c = rule.Read(label[row.index]);
      if (c < 0) {
        loss[row.index] = c == kIgnoredLabel ? kIgnoredRow : kBadRow;
      } else {
        const float target = (1 - smoothing) * (x[at + c * step] - top) +
                             smoothing / static_cast<float>(row.length) * spread;
        const float nll = logf(sum) - target;
        loss[row.index] = nll > kMostLoss ? kMostLoss : nll;
      }
    });
  }
};

// dx = (p - [label]) * weight / normalizer; 0 in ignored rows.
struct LossGradientRow {
  const float *prob, *label, *weight, *normalizer;
  float* dx;
  Rows rows;
  LabelRule rule;
  float smoothing;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = rows.Start(row.index), step = rows.inner;
    const int c = rule.Read(label[row.index]);
    const float scale = c < 0 ? 0.0f : *weight / *normalizer;
    const float base = smoothing / static_cast<float>(row.length);
    row.ForEach([&](int64_t i) {
      const float target = i == c ? base + 1 - smoothing : base;
      dx[at + i * step] = (prob[at + i * step] - target) * scale;
    });
  }
};

class SoftmaxWithLoss final : public Layer {
 public:
  explicit SoftmaxWithLoss(const LayerSpec& spec)
      : spec_(spec), total_(spec, caffe::LossParameter::VALID) {
    smoothing_ = spec.proto().loss_param().label_smoothing();
    if (!(smoothing_ >= 0 && smoothing_ <= 1)) {
      spec.FailIn("loss_param", "label_smoothing",
                  Join("label_smoothing is ", smoothing_, "; it is a share, from 0 to 1"));
    }
  }

  void Plan(PlanContext& plan) override {
    RequireF32(plan, spec_);
    const Shape& scores = plan.In(0);
    const int axis =
        AxisIn(spec_, "softmax_param", "axis", spec_.proto().softmax_param().axis(), scores);
    RequireLabels(plan, spec_, axis);
    rows_ = AxisRows(scores, axis);
    rule_ = LabelRuleOf(spec_, rows_.length);
    total_.Plan(rows_.count, scores.Count(0, axis));
    plan.Out(0, {});
    if (plan.NumOut() > 1) {
      plan.Out(1, scores);
      plan.KeepOutput(1);
    }
    own_probabilities_ = plan.NumOut() == 1;
    plan.Workspace(sizeof(float) * static_cast<size_t>(kHead + rows_.count +
                                                       (own_probabilities_ ? scores.Count() : 0)));
    plan.KeepInput(1);
    plan.NoGradient(1);
  }

  void Forward(RunContext& run) override {
    const Parts part = Cut(run);
    MapRows(
        run.device(), rows_.count, rows_.length,
        LossRow{run.In(0).f32(), run.In(1).f32(), part.prob, part.loss, rows_, rule_, smoothing_});
    if (total_.Forward(run.device(), part.loss, part.head, run.Out(0).f32())) {
      ThrowBadLabel(spec_, run.In(1), rule_);
    }
  }

  void Backward(RunContext& run) override {
    if (run.NumOut() > 1 && run.HasGradOut(1)) {
      spec_.Fail(
          "the probabilities (second top) have no gradient; take them from a Softmax layer "
          "to train on them, and write loss_weight: 0 for the second top");
    }
    const Parts part = Cut(run);
    MapRows(run.device(), rows_.count, rows_.length,
            LossGradientRow{part.prob, run.In(1).f32(), run.GradOut(0).f32(),
                            &part.head->normalizer, run.GradIn(0).f32(), rows_, rule_, smoothing_});
  }

 private:
  static constexpr int64_t kHead = sizeof(LossHead) / sizeof(float);

  struct Parts {
    LossHead* head;
    float *loss, *prob;
  };
  Parts Cut(RunContext& run) const {
    auto* start = reinterpret_cast<float*>(run.Workspace().data());
    float* const loss = start + kHead;
    return {reinterpret_cast<LossHead*>(start), loss,
            own_probabilities_ ? loss + rows_.count : run.Out(1).f32()};
  }

  LayerSpec spec_;
  LossTotal total_;
  Rows rows_;
  LabelRule rule_;
  float smoothing_ = 0;
  bool own_probabilities_ = true;
};

const RegisterLayer<SoftmaxWithLoss> kSoftmaxWithLoss(
    "SoftmaxWithLoss",
    {.text =
         "Cross entropy of softmax(scores) and class labels: -sum log p[label] / normalizer.\n"
         "bottom 0: scores, classes along softmax_param's axis (default 1). bottom 1: labels, one "
         "whole number per row of scores, checked at every pass.\n"
         "top 0: the loss, a scalar. top 1 (optional): the probabilities.\n"
         "normalizer, by loss_param.normalization: FULL the number of labels; VALID (default) of "
         "those that are not ignore_label; BATCH_SIZE of items; NONE 1; never less than 1.\n"
         "The loss of one row ends at 87.34, where a probability is no longer a float.",
     .param = "loss_param",
     .arity = {.min_in = 2, .max_in = 2, .min_out = 1, .max_out = 2}});

}  // namespace
}  // namespace trainer
