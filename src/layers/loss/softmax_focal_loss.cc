#include <cmath>

#include "loss/class_weights.h"
#include "loss/loss_normalizer.h"
#include "shared/checks.h"
#include "shared/class_labels.h"
#include "shared/softmax_rows.h"
#include "trainer/backend/memory/scratch_layout.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Computes one row: p = softmax(x), the loss w (1 - p_c)^gamma (-log p_c) for the label's class c,
// and its slope: dx_j = slope (p_j - [j = c]). With m = 1 - p_c, computed as the sum of the other
// probabilities, slope = w (m^gamma - gamma p_c m^(gamma - 1) log p_c). An ignored or bad label
// gets its mark as the loss, and the slope 0.
struct SoftmaxFocalRow {
  const float *x, *label, *class_weight;  // class_weight is null without class weights
  float *prob, *loss, *slope, *row_weight;
  Rows rows;
  LabelRule rule;
  LabelOrder order;
  float gamma;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = rows.Start(row.index), step = rows.inner;
    const RowSoftmax softmax = RowSoftmax::Write(row, x + at, prob + at, step);
    const int c = rule.Read(label[order.At(row.index)]);
    if (c < 0) {
      row.Once([&] {
        loss[row.index] = c == kIgnoredLabel ? kIgnoredRow : kBadRow;
        slope[row.index] = 0;
        if (row_weight != nullptr) row_weight[row.index] = 0;
      });
      return;
    }
    const float top = softmax.top, scale = 1 / softmax.sum;
    const float m =
        scale * row.Sum([&](int64_t i) { return i == c ? 0.0f : Exp(x[at + i * step] - top); });
    row.Once([&] {
      const float w = class_weight == nullptr ? 1.0f : class_weight[c];
      const float score = x[at + c * step] - top;
      const float log_p = m < 0.5f ? log1pf(-m) : score - logf(softmax.sum);
      const float factor = gamma == 2 ? m * m : powf(m, gamma);
      const float bend = m > 0 ? gamma * Exp(score) * scale * (factor / m) * log_p : 0.0f;
      loss[row.index] = -w * factor * log_p;
      slope[row.index] = w * (factor - bend);
      if (row_weight != nullptr) row_weight[row.index] = w;
    });
  }
};

// dx = slope * (p - [the label's class]) * weight / normalizer.
struct SoftmaxFocalGradientRow {
  const float *prob, *label, *slope, *weight, *normalizer;
  float* dx;
  Rows rows;
  LabelRule rule;
  LabelOrder order;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = rows.Start(row.index), step = rows.inner;
    const int c = rule.Read(label[order.At(row.index)]);
    const float scale = slope[row.index] * *weight / *normalizer;
    row.ForEach([&](int64_t i) {
      dx[at + i * step] = c < 0 ? 0.0f : (prob[at + i * step] - (i == c ? 1.0f : 0.0f)) * scale;
    });
  }
};

// loss = -sum w (1 - p)^gamma log p / normalizer, with p the probability of the label's class and w
// its class weight. Source: Lin et al., "Focal loss for dense object detection", arXiv:1708.02002,
// for classes that exclude each other.
class SoftmaxFocalLoss final : public Layer {
 public:
  explicit SoftmaxFocalLoss(const LayerSpec& spec)
      : spec_(spec),
        total_(spec, caffe::LossParameter::VALID),
        weights_(spec),
        gamma_(spec.proto().focal_loss_param().gamma()) {
    if (!(gamma_ >= 0 && std::isfinite(gamma_))) {
      spec.FailIn("focal_loss_param", "gamma",
                  Join("gamma is ", gamma_,
                       "; it must be 0 or more: 0 is the plain cross entropy, 2 is usual"));
    }
    if (spec.proto().focal_loss_param().has_alpha()) {
      spec.FailIn("focal_loss_param", "alpha",
                  "alpha weighs the two sides of SigmoidFocalLoss; write class_weight in "
                  "loss_param, one factor per class");
    }
    if (spec.proto().loss_param().has_label_smoothing()) {
      spec.FailIn("loss_param", "label_smoothing",
                  "SoftmaxFocalLoss does not smooth labels; remove label_smoothing, or use "
                  "SoftmaxWithLoss");
    }
  }

  void UseAllReduce(const AllReduceFn& replicas) override { total_.Use(replicas); }
  LabelCount* label_count() override { return &total_; }

  void Setup(SetupContext& ctx) override {
    ctx.UsesAllReduce();
    RequireF32(ctx, spec_);
    const Shape& scores = ctx.Input(0);
    const int given = spec_.proto().softmax_param().axis();
    RefuseSwappedBottoms(ctx, spec_, given);
    const int axis = AxisIn(spec_, "softmax_param", "axis", given, scores);
    order_ = RequireLabels(ctx, spec_, axis);
    RefuseOneClass(spec_, scores, axis);
    rows_ = AxisRows(scores, axis);
    rule_ = LabelRuleOf(spec_, rows_.length);
    weights_.Plan(spec_, rows_.length);
    total_.Plan(rows_.count, scores.Count(0, axis));
    ctx.Output(0, {});
    ScratchLayout layout;
    head_ = layout.Add<LossAccumulators>(1);
    loss_ = layout.Add<float>(rows_.count);
    slope_ = layout.Add<float>(rows_.count);
    row_weight_ = layout.Add<float>(weights_.IsSet() ? rows_.count : 0);
    prob_ = layout.Add<float>(scores.Count());
    ctx.Workspace(layout.Bytes());
    ctx.Constants(weights_.values());
    ctx.SaveInput(1);
    ctx.NotDifferentiable(1);
  }

  void Forward(const RunContext& run) override {
    const std::span<std::byte> kept = run.Workspace();
    const bool weighted = weights_.IsSet();
    float* const row_weights = weighted ? row_weight_.At(kept) : nullptr;
    MapRows(run.device(), rows_.count, rows_.length,
            SoftmaxFocalRow{run.Input(0).f32(), run.Input(1).f32(),
                            weighted ? run.Constants() : nullptr, prob_.At(kept), loss_.At(kept),
                            slope_.At(kept), row_weights, rows_, rule_, order_, gamma_});
    ReportBadLabels(run, rule_);
    total_.Forward(run.device(), loss_.At(kept), head_.At(kept), run.Output(0).f32(), row_weights);
  }

  void ThrowInputError(const RunContext& run, int64_t at, float label) const override {
    ThrowBadLabel(spec_, run.Input(1).shape, rule_, at, label);
  }

  void Backward(const RunContext& run) override {
    const std::span<std::byte> kept = run.Workspace();
    MapRows(run.device(), rows_.count, rows_.length,
            SoftmaxFocalGradientRow{prob_.At(kept), run.Input(1).f32(), slope_.At(kept),
                                    run.GradOutput(0).f32(), &head_.At(kept)->normalizer,
                                    run.GradInput(0).f32(), rows_, rule_, order_});
  }

 private:
  LayerSpec spec_;
  LossNormalizer total_;
  ClassWeights weights_;
  Rows rows_;
  LabelRule rule_;
  LabelOrder order_;
  ScratchRegion<LossAccumulators> head_;
  ScratchRegion<float> loss_, slope_, row_weight_, prob_;
  float gamma_;
};

const RegisterLayer<SoftmaxFocalLoss> kSoftmaxFocalLoss(
    "SoftmaxFocalLoss",
    {.text =
         "Softmax cross entropy in which records that the net already gets right count little.\n"
         "-sum w (1 - p)^gamma log p / normalizer, with p the softmax probability of the label's "
         "class.\n"
         "bottom 0: scores, classes along softmax_param's axis (default 1). bottom 1: labels, "
         "one per row of scores, checked in every pass. The top is a scalar. gamma (default "
         "2): 0 is SoftmaxWithLoss.\n"
         "w is loss_param.class_weight, one factor per class, or class_weight_power's; without "
         "them it is 1. normalizer, ignore_label: as for SoftmaxWithLoss, by "
         "loss_param.normalization, default VALID.",
     .param = "focal_loss_param",
     .arity = {.min_in = 2, .max_in = 2}});

}  // namespace
}  // namespace trainer
