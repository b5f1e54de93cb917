#include "loss/class_weights.h"
#include "loss/loss_normalizer.h"
#include "shared/checks.h"
#include "shared/class_labels.h"
#include "shared/softmax_rows.h"
#include "trainer/backend/memory/nchw_copy.h"
#include "trainer/backend/memory/scratch_layout.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/config/blob.h"
#include "trainer/config/named_file.h"

namespace trainer {
namespace {

constexpr char kInfogainLossParam[] = "infogain_loss_param";
constexpr float kInfogainLossLeast = 1e-20f;  // Caffe's lower bound of a probability

// Computes one row: p = softmax(x), and the loss -sum_l gain[label][l] * log p_l, times the label's
// class weight unless `class_weight` is null. An ignored or bad label gets its mark as the loss.
struct InfogainLossRow {
  const float *x, *label, *gain, *class_weight;
  float *prob, *loss, *row_weight;  // row_weight is null without class weights
  Rows rows;
  LabelRule rule;
  LabelOrder order;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = rows.Start(row.index), step = rows.inner;
    const RowSoftmax softmax = RowSoftmax::Write(row, x + at, prob + at, step);
    const float top = softmax.top, scale = 1 / softmax.sum;
    const int c = rule.Read(label[order.At(row.index)]);
    if (c < 0) {
      row.Once([&] {
        loss[row.index] = c == kIgnoredLabel ? kIgnoredRow : kBadRow;
        if (row_weight != nullptr) row_weight[row.index] = 0;
      });
      return;
    }
    const float total = row.Sum([&](int64_t i) {
      const float p = Exp(x[at + i * step] - top) * scale;
      return gain[c * row.length + i] * logf(p < kInfogainLossLeast ? kInfogainLossLeast : p);
    });
    row.Once([&] {
      if (row_weight != nullptr) row_weight[row.index] = class_weight[c];
      loss[row.index] = row_weight == nullptr ? -total : -total * class_weight[c];
    });
  }
};

// dx_i = (p_i * sum_l gain[label][l] - gain[label][i]) * weight / normalizer, times the label's
// class weight unless `class_weight` is null; 0 in ignored rows.
struct InfogainGradientRow {
  const float *prob, *label, *gain, *class_weight, *weight, *normalizer;
  float* dx;
  Rows rows;
  LabelRule rule;
  LabelOrder order;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = rows.Start(row.index), step = rows.inner;
    const int c = rule.Read(label[order.At(row.index)]);
    if (c < 0) return row.ForEach([&](int64_t i) { dx[at + i * step] = 0; });
    const float* const own = gain + c * row.length;
    const float all = row.Sum([&](int64_t i) { return own[i]; });
    const float scale = *weight / *normalizer * (class_weight == nullptr ? 1.0f : class_weight[c]);
    row.ForEach(
        [&](int64_t i) { dx[at + i * step] = (prob[at + i * step] * all - own[i]) * scale; });
  }
};

// Cross entropy of softmax(x) with the label's row of a matrix H: loss = -sum_l H[label][l] log p_l
// / normalizer. H is the third bottom or a file. With the identity it is SoftmaxWithLoss.
class InfogainLoss final : public Layer {
 public:
  explicit InfogainLoss(const LayerSpec& spec)
      : spec_(spec), total_(spec, caffe::LossParameter::VALID), weights_(spec) {
    if (spec.proto().loss_param().has_normalize()) {
      spec.FailIn("loss_param", "normalize",
                  "InfogainLoss does not support normalize; write normalization: VALID instead of "
                  "true, BATCH_SIZE instead of false");
    }
    const bool file = spec.proto().infogain_loss_param().has_source();
    if (spec.proto().bottom_size() > 2) {
      if (!file) return;
      spec.FailIn(kInfogainLossParam, "source",
                  "the matrix is given twice, as the third bottom and as source; keep one");
    }
    if (!file) {
      spec.Fail(
          "the matrix is missing; give it as a third bottom, or as infogain_loss_param.source, a "
          "binaryproto file");
    }
    ReadNamedFile(spec, kInfogainLossParam, "source", spec.proto().infogain_loss_param().source(),
                  [this](const std::string& path) { ReadMatrix(path); });
  }

  void UseAllReduce(const AllReduceFn& replicas) override { total_.Use(replicas); }
  LabelCount* label_count() override { return &total_; }

  void Setup(SetupContext& ctx) override {
    ctx.UsesAllReduce();
    RequireF32(ctx, spec_);
    const Shape& scores = ctx.Input(0);
    const int given = spec_.proto().infogain_loss_param().axis();
    RefuseSwappedBottoms(ctx, spec_, given);
    const int axis = AxisIn(spec_, kInfogainLossParam, "axis", given, scores);
    order_ = RequireLabels(ctx, spec_, axis);
    rows_ = AxisRows(scores, axis);
    rule_ = LabelRuleOf(spec_, rows_.length);
    CheckMatrix(ctx);
    weights_.Plan(spec_, rows_.length);
    total_.Plan(rows_.count, scores.Count(0, axis));
    ctx.Output(0, {});
    if (ctx.NumOutputs() > 1) {
      ctx.Output(1, scores);
      ctx.SaveOutput(1);
    }
    ScratchLayout layout;
    head_ = layout.Add<LossAccumulators>(1);
    loss_ = layout.Add<float>(rows_.count);
    own_prob_ = layout.Add<float>(ctx.NumOutputs() > 1 ? 0 : scores.Count());
    row_weight_ = layout.Add<float>(weights_.IsSet() ? rows_.count : 0);
    ctx.Workspace(layout.Bytes());
    std::vector<float> constants = matrix_;
    constants.insert(constants.end(), weights_.values().begin(), weights_.values().end());
    ctx.Constants(constants);
    for (int i = 1; i < ctx.NumInputs(); ++i) {
      ctx.SaveInput(i);
      ctx.NotDifferentiable(i);
    }
  }

  void Forward(const RunContext& run) override {
    const Buffers buffers = BuffersOf(run);
    MapRows(run.device(), rows_.count, rows_.length,
            InfogainLossRow{run.Input(0).f32(), run.Input(1).f32(), buffers.gain, buffers.weights,
                            buffers.prob, buffers.loss, buffers.row_weights, rows_, rule_, order_});
    ReportBadLabels(run, rule_);
    total_.Forward(run.device(), buffers.loss, buffers.head, run.Output(0).f32(),
                   buffers.row_weights);
  }

  void ThrowInputError(const RunContext& run, int64_t at, float label) const override {
    ThrowBadLabel(spec_, run.Input(1).shape, rule_, at, label);
  }

  // Throws kConfig if a gradient arrives at the probabilities, top 1.
  void Backward(const RunContext& run) override {
    RefuseProbabilityGradient(run, spec_);
    const Buffers buffers = BuffersOf(run);
    MapRows(run.device(), rows_.count, rows_.length,
            InfogainGradientRow{buffers.prob, run.Input(1).f32(), buffers.gain, buffers.weights,
                                run.GradOutput(0).f32(), &buffers.head->normalizer,
                                run.GradInput(0).f32(), rows_, rule_, order_});
  }

 private:
  // Reads the matrix from a file. Throws kData unless it holds a BlobProto message.
  void ReadMatrix(const std::string& path) {
    constexpr uint64_t kMaxBytes = uint64_t{1} << 30;
    source_ = path;
    const std::string content = ReadFile(path, kMaxBytes);
    caffe::BlobProto proto;
    if (content.empty() || !proto.ParseFromString(content)) {
      throw Error(ErrorCode::kData, {path},
                  Join("not a matrix: its ", content.size(), " bytes are not a BlobProto message"));
    }
    const BlobData blob = ReadBlob(proto, {path}, "the infogain matrix");
    matrix_.assign(blob.values.begin(), blob.values.end());
  }

  // Throws kConfig unless the matrix has classes x classes numbers; as a bottom, in row-major
  // order.
  void CheckMatrix(const SetupContext& ctx) const {
    const int64_t k = rows_.length;
    const bool given = ctx.NumInputs() > 2;
    const int64_t count = given ? ctx.Input(2).Count() : static_cast<int64_t>(matrix_.size());
    if (count == k * k && !(given && IsNhwc(ctx.Input(2)))) return;
    const std::string message =
        Join("the matrix has ", count, " numbers; ", k, " classes need ", k, " x ", k,
             given ? ", as shape " + Dims({k, k}) : " in " + source_);
    if (given) spec_.Fail("bottom", message, 2);
    spec_.FailIn(kInfogainLossParam, "source", message);
  }

  // The parts of the workspace, H and the class weights. `prob` is the second top if there is one;
  // `row_weights` and `weights` are null without class weights.
  struct Buffers {
    LossAccumulators* head;
    float *loss, *prob, *row_weights;
    const float *gain, *weights;
  };
  Buffers BuffersOf(const RunContext& run) const {
    const std::span<std::byte> kept = run.Workspace();
    return {head_.At(kept),
            loss_.At(kept),
            run.NumOutputs() > 1 ? run.Output(1).f32() : own_prob_.At(kept),
            weights_.IsSet() ? row_weight_.At(kept) : nullptr,
            run.NumInputs() > 2 ? run.Input(2).f32() : run.Constants(),
            weights_.IsSet() ? run.Constants() + matrix_.size() : nullptr};
  }

  LayerSpec spec_;
  LossNormalizer total_;
  ClassWeights weights_;
  std::string source_;
  std::vector<float> matrix_;  // empty if it is an input
  Rows rows_;
  LabelRule rule_;
  LabelOrder order_;
  ScratchRegion<LossAccumulators> head_;
  ScratchRegion<float> loss_, own_prob_, row_weight_;
};

const RegisterLayer<InfogainLoss> kInfogainLoss(
    "InfogainLoss",
    {.text =
         "Softmax loss whose target is a row of a matrix H: -sum over l of H[label][l] log p[l].\n"
         "bottom 0: scores, classes along infogain_loss_param.axis (default 1); p is their "
         "softmax, at least 1e-20. bottom 1: labels. bottom 2 (or source, a binaryproto file): H, "
         "classes x classes.\n"
         "top 0: the loss, a scalar, divided as loss_param.normalization says (default VALID). "
         "loss_param.class_weight and class_weight_power weigh the rows by their labels, as in "
         "SoftmaxWithLoss. "
         "top 1 (optional): the probabilities. If H is the identity, the layer is SoftmaxWithLoss.",
     .param = kInfogainLossParam,
     .arity = {.min_in = 2, .max_in = 3, .min_out = 1, .max_out = 2}});

}  // namespace
}  // namespace trainer
