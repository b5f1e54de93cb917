#include <algorithm>

#include "loss/class_weights.h"
#include "loss/loss_normalizer.h"
#include "loss/soft_label_rows.h"
#include "shared/checks.h"
#include "shared/class_labels.h"
#include "shared/softmax_rows.h"
#include "trainer/backend/memory/scratch_layout.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr float kMaxLoss = 87.3365447f;  // -log(FLT_MIN): Caffe's lower bound of a probability

// The factors of the logarithms of a row's probabilities. Class c has the weight[c], or 1 if
// `weight` is null. The label's class gets its weight, except the fraction `smoothing`, which is
// spread over all classes.
struct Target {
  const float* weight;
  float smoothing;

  HD float Weight(int64_t c) const { return weight == nullptr ? 1.0f : weight[c]; }
  // Returns the target of class c; `spread` is smoothing / K for K classes.
  HD float At(int64_t c, int64_t label, float spread) const {
    return Weight(c) * (c == label ? spread + 1 - smoothing : spread);
  }
  // Returns the sum of the targets over the row's classes.
  template <class Row>
  HD float Sum(const Row& row, int64_t label, float spread) const {
    if (weight == nullptr) return 1;
    const float all = smoothing > 0 ? row.Sum([&](int64_t c) { return weight[c]; }) * spread : 0.0f;
    return all + (label < 0 ? 0.0f : (1 - smoothing) * weight[label]);
  }
};

// Computes one row: probabilities, and the loss -sum_c target_c log p_c, at most kMaxLoss times the
// sum of the targets. For one label without weights, the loss is log(sum_j exp(x_j)) - x_label. An
// ignored or bad label gets its mark as the loss.
struct LossRow {
  const float *x, *label;
  float *prob, *loss, *row_weight;  // row_weight is null without class weights
  Rows rows;
  LabelRule rule;
  LabelOrder order;
  Target target;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = rows.Start(row.index), step = rows.inner;
    const RowSoftmax softmax = RowSoftmax::Write(row, x + at, prob + at, step);
    const float top = softmax.top, sum = softmax.sum;
    const int c = rule.Read(label[order.At(row.index)]);
    const float spread = target.smoothing / static_cast<float>(row.length);
    const float all = target.Sum(row, c, spread);
    const float smooth =
        target.smoothing > 0
            ? row.Sum([&](int64_t i) { return target.Weight(i) * (x[at + i * step] - top); })
            : 0.0f;
    row.Once([&] {
      if (row_weight != nullptr) row_weight[row.index] = c < 0 ? 0.0f : target.Weight(c);
      if (c < 0) {
        loss[row.index] = c == kIgnoredLabel ? kIgnoredRow : kBadRow;
      } else {
        const float own =
            (1 - target.smoothing) * target.Weight(c) * (x[at + c * step] - top) + spread * smooth;
        const float nll = all * logf(sum) - own;
        loss[row.index] = nll > all * kMaxLoss ? all * kMaxLoss : nll;
      }
    });
  }
};

// dx = (p * the sum of the targets - target) * weight / normalizer; 0 in ignored rows.
struct LossGradientRow {
  const float *prob, *label, *weight, *normalizer;
  float* dx;
  Rows rows;
  LabelRule rule;
  LabelOrder order;
  Target target;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = rows.Start(row.index), step = rows.inner;
    const int c = rule.Read(label[order.At(row.index)]);
    const float scale = c < 0 ? 0.0f : *weight / *normalizer;
    const float spread = target.smoothing / static_cast<float>(row.length);
    const float all = target.Sum(row, c, spread);
    row.StoreEach(
        [&](int64_t i) { return (all * prob[at + i * step] - target.At(i, c, spread)) * scale; },
        [&](int64_t i, float value) { dx[at + i * step] = value; });
  }
};

// Cross entropy of softmax(x) with class labels, loss = -sum log p[label] / normalizer, with
// optional class weights and label smoothing. If bottom 1 has the shape of the scores, it holds a
// share for each class instead, as mixup makes them: see soft_label_rows.h.
class SoftmaxWithLoss final : public Layer {
 public:
  explicit SoftmaxWithLoss(const LayerSpec& spec)
      : spec_(spec),
        total_(spec, caffe::LossParameter::VALID),
        weights_(spec),
        smoothing_(spec.proto().loss_param().label_smoothing()) {
    if (!(smoothing_ >= 0 && smoothing_ <= 1)) {
      spec.FailIn("loss_param", "label_smoothing",
                  Join("label_smoothing is ", smoothing_, "; it must be from 0 to 1"));
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
    rows_ = AxisRows(scores, axis);
    shares_ = rows_.length > 1 && ctx.Input(1) == scores;
    if (shares_) {
      RefuseLabelFields();
    } else {
      order_ = RequireLabels(ctx, spec_, axis);
    }
    RefuseOneClass(spec_, scores, axis);
    rule_ = LabelRuleOf(spec_, rows_.length);
    weights_.Plan(spec_, rows_.length);
    total_.Plan(rows_.count, scores.Count(0, axis));
    ctx.Output(0, {});
    if (ctx.NumOutputs() > 1) {
      ctx.Output(1, scores);
      ctx.SaveOutput(1);
    }
    own_probabilities_ = ctx.NumOutputs() == 1;
    const bool weighted = weights_.IsSet();
    ScratchLayout layout;
    head_ = layout.Add<LossAccumulators>(1);
    loss_ = layout.Add<float>(rows_.count);
    row_weight_ = layout.Add<float>(weighted ? rows_.count : 0);
    prob_ = layout.Add<float>(own_probabilities_ ? scores.Count() : 0);
    ctx.Workspace(layout.Bytes());
    ctx.Constants(weights_.values());
    ctx.SaveInput(1);
    ctx.NotDifferentiable(1);
  }

  void Forward(const RunContext& run) override {
    const Buffers buffers = BuffersOf(run);
    if (shares_) {
      MapRows(run.device(), rows_.count, rows_.length,
              ShareLossRow{run.Input(0).f32(), run.Input(1).f32(), buffers.prob, buffers.loss,
                           rows_, SmoothShare{smoothing_}, kMaxLoss, run.input_error()});
      total_.Forward(run.device(), buffers.loss, buffers.head, run.Output(0).f32(), nullptr);
      return;
    }
    MapRows(
        run.device(), rows_.count, rows_.length,
        LossRow{run.Input(0).f32(), run.Input(1).f32(), buffers.prob, buffers.loss,
                buffers.row_weights, rows_, rule_, order_, Target{buffers.weights, smoothing_}});
    ReportBadLabels(run, rule_);
    total_.Forward(run.device(), buffers.loss, buffers.head, run.Output(0).f32(),
                   buffers.row_weights);
  }

  void ThrowInputError(const RunContext& run, int64_t at, float label) const override {
    if (shares_) {
      ThrowBadShares(spec_, std::max<int64_t>(1, rows_.count / run.Input(1).shape[0]), at, label);
    }
    ThrowBadLabel(spec_, run.Input(1).shape, rule_, at, label);
  }

  // Throws kConfig if a gradient arrives at the probabilities, top 1.
  void Backward(const RunContext& run) override {
    RefuseProbabilityGradient(run, spec_);
    const Buffers buffers = BuffersOf(run);
    if (shares_) {
      MapRows(run.device(), rows_.count, rows_.length,
              ShareGradientRow{buffers.prob, run.Input(1).f32(), run.GradOutput(0).f32(),
                               &buffers.head->normalizer, run.GradInput(0).f32(), rows_,
                               SmoothShare{smoothing_}});
      return;
    }
    MapRows(run.device(), rows_.count, rows_.length,
            LossGradientRow{buffers.prob, run.Input(1).f32(), run.GradOutput(0).f32(),
                            &buffers.head->normalizer, run.GradInput(0).f32(), rows_, rule_, order_,
                            Target{buffers.weights, smoothing_}});
  }

 private:
  // Throws kConfig for ignore_label and class weights, which need labels, if bottom 1 holds shares.
  void RefuseLabelFields() const {
    const caffe::LossParameter& loss = spec_.proto().loss_param();
    const char* const field = loss.has_ignore_label() ? "ignore_label" : weights_.field();
    if (!loss.has_ignore_label() && !weights_.IsSet()) return;
    spec_.FailIn(
        "loss_param", field,
        Join(field,
             " works with class labels, but here bottom 1 has one share per score; remove it"));
  }

  // The parts of the workspace, and the class weights. `weights` and `row_weights` are null without
  // class weights; `prob` is the second top if there is one.
  struct Buffers {
    LossAccumulators* head;
    float* loss;
    const float* weights;
    float *row_weights, *prob;
  };
  Buffers BuffersOf(const RunContext& run) const {
    const std::span<std::byte> kept = run.Workspace();
    const bool weighted = weights_.IsSet();
    return {head_.At(kept), loss_.At(kept), run.Constants(),
            weighted ? row_weight_.At(kept) : nullptr,
            own_probabilities_ ? prob_.At(kept) : run.Output(1).f32()};
  }

  LayerSpec spec_;
  LossNormalizer total_;
  ClassWeights weights_;
  Rows rows_;
  LabelRule rule_;
  LabelOrder order_;
  ScratchRegion<LossAccumulators> head_;
  ScratchRegion<float> loss_, row_weight_, prob_;
  float smoothing_ = 0;
  bool own_probabilities_ = true;
  bool shares_ = false;  // bottom 1 has a share per score instead of labels
};

const RegisterLayer<SoftmaxWithLoss> kSoftmaxWithLoss(
    "SoftmaxWithLoss",
    {.text =
         "Cross entropy of softmax(scores) and class labels: -sum log p[label] / normalizer.\n"
         "bottom 0: scores, classes along softmax_param's axis (default 1). bottom 1: labels, one "
         "per row of scores, checked in every pass; fractions are cut off (0.5 is class 0).\n"
         "If bottom 1 has the shape of the scores, it gives a share for each class of each row, "
         "as mixup does (transform_param): the loss is -sum share * log p / normalizer. Shares are "
         "0 or more with sum 1 in each row, checked in every pass.\n"
         "top 0: the loss, a scalar. top 1 (optional): the probabilities.\n"
         "normalizer, by loss_param.normalization: FULL: the number of labels; VALID (default): "
         "the number of labels that are not ignore_label; BATCH_SIZE: the number of items; NONE: "
         "1. It is never less than 1.\n"
         "loss_param.class_weight, one factor per class: a row counts with the factor of its "
         "label, and VALID divides by the sum of these factors. class_weight_power p: `train` "
         "counts the records of each class in the training set and writes the factors, "
         "proportional to 1 / count^p, into the net.\n"
         "loss_param.label_smoothing s, as in PyTorch: with K classes, the target of the label is "
         "1 - s + s / K and the target of each other class is s / K, in loss and gradient. NVIDIA "
         "Caffe subtracts s / (K - 1) from every gradient and 1 - s from the label's, on a GPU "
         "alone, and does not smooth the loss.\n"
         "The loss of one row ends at 87.34, where a probability is no longer a float.",
     .param = "loss_param",
     .arity = {.min_in = 2, .max_in = 2, .min_out = 1, .max_out = 2}});

}  // namespace
}  // namespace trainer
