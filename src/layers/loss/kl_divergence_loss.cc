#include <cmath>

#include "loss/loss_normalizer.h"
#include "loss/soft_label_rows.h"
#include "shared/checks.h"
#include "shared/softmax_rows.h"
#include "trainer/backend/memory/scratch_layout.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Computes one row: p = softmax(x), and the loss sum_c t_c (log t_c - log p_c). A target of 0 adds
// nothing.
struct DivergenceRow {
  const float *x, *target;
  float *prob, *loss;
  Rows rows;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = rows.Start(row.index), step = rows.inner;
    const RowSoftmax softmax = RowSoftmax::Write(row, x + at, prob + at, step);
    const float top = softmax.top, log_sum = logf(softmax.sum);
    const float sum = row.Sum([&](int64_t i) {
      const float t = target[at + i * step];
      const float log_p = x[at + i * step] - top - log_sum;
      return t == 0 ? 0.0f : t * (logf(t) - log_p);
    });
    row.Once([&] { loss[row.index] = sum; });
  }
};

// loss = sum t (log t - log softmax(x)) / normalizer: the Kullback-Leibler divergence of softmax(x)
// from a distribution t over the classes, which gets no gradient. It differs from the cross entropy
// only by the entropy of t, so both have the same gradient.
class KLDivergenceLoss final : public Layer {
 public:
  explicit KLDivergenceLoss(const LayerSpec& spec)
      : spec_(spec), total_(spec, caffe::LossParameter::BATCH_SIZE) {
    const caffe::LossParameter& loss = spec.proto().loss_param();
    if (loss.has_ignore_label()) RefuseLabelField("ignore_label");
    if (loss.has_label_smoothing()) RefuseLabelField("label_smoothing");
  }

  void Setup(SetupContext& ctx) override {
    RequireF32(ctx, spec_);
    RequireEqualShapes(ctx, spec_);
    const Shape& scores = ctx.Input(0);
    const int axis =
        AxisIn(spec_, "softmax_param", "axis", spec_.proto().softmax_param().axis(), scores);
    rows_ = AxisRows(scores, axis);
    total_.Plan(rows_.count, scores.Count(0, axis));
    ctx.Output(0, {});
    ScratchLayout layout;
    head_ = layout.Add<LossAccumulators>(1);
    loss_ = layout.Add<float>(rows_.count);
    prob_ = layout.Add<float>(scores.Count());
    ctx.Workspace(layout.Bytes());
    ctx.SaveInput(1);
    ctx.NotDifferentiable(1);
  }

  void Forward(const RunContext& run) override {
    const std::span<std::byte> kept = run.Workspace();
    MapRows(run.device(), rows_.count, rows_.length,
            DivergenceRow{run.Input(0).f32(), run.Input(1).f32(), prob_.At(kept), loss_.At(kept),
                          rows_});
    total_.Forward(run.device(), loss_.At(kept), head_.At(kept), run.Output(0).f32());
  }

  void Backward(const RunContext& run) override {
    const std::span<std::byte> kept = run.Workspace();
    MapRows(run.device(), rows_.count, rows_.length,
            ShareGradientRow{prob_.At(kept), run.Input(1).f32(), run.GradOutput(0).f32(),
                             &head_.At(kept)->normalizer, run.GradInput(0).f32(), rows_,
                             SmoothShare{0}});
  }

 private:
  // Throws kConfig for a field of loss_param that changes labels.
  [[noreturn]] void RefuseLabelField(const char* field) const {
    spec_.FailIn("loss_param", field,
                 Join("KLDivergenceLoss compares with a distribution instead of labels, so ", field,
                      " means nothing here; remove it"));
  }

  LayerSpec spec_;
  LossNormalizer total_;
  Rows rows_;
  ScratchRegion<LossAccumulators> head_;
  ScratchRegion<float> loss_, prob_;
};

const RegisterLayer<KLDivergenceLoss> kKLDivergenceLoss(
    "KLDivergenceLoss",
    {.text = "The divergence of the net's distribution from a given one, as in knowledge "
             "distillation.\n"
             "The formula is sum t (log t - log softmax(x)) / normalizer.\n"
             "bottom 0: scores x, classes along softmax_param's axis (default 1). bottom 1: the "
             "distribution t of the same shape, 0 or more, with sum 1 in each row; it gets no "
             "gradient. The top is a scalar, 0 if both agree.\n"
             "normalizer, by loss_param.normalization: BATCH_SIZE (default): the number of items, "
             "as PyTorch's KLDivLoss with reduction batchmean; FULL and VALID: the number of rows; "
             "NONE: 1.",
     .param = "loss_param",
     .arity = {.min_in = 2, .max_in = 2}});

}  // namespace
}  // namespace trainer
