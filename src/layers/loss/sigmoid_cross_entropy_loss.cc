#include <cmath>

#include "loss/loss_normalizer.h"
#include "shared/checks.h"
#include "trainer/backend/loops/math.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Which targets do not count: the ones whose integer part is ignore_label.
struct Targets {
  bool has_ignore;  // false: all targets count
  float ignore;
  HD bool Skips(float t) const { return has_ignore && truncf(t) == ignore; }
};

// Computes -t log s(x) - (1 - t) log(1 - s(x)), with s the logistic function, in a form that cannot
// overflow: max(x, 0) - x t + log(1 + exp(-|x|)).
struct CrossEntropy {
  const float *x, *t;
  float* loss;
  Targets targets;
  HD void operator()(int64_t i) const {
    const float v = x[i];
    loss[i] =
        targets.Skips(t[i]) ? kIgnoredRow : (v > 0 ? v : 0.0f) - v * t[i] + log1pf(Exp(-fabsf(v)));
  }
};

// Returns dx = (s(x) - t) * weight / normalizer, or 0 for a target that does not count.
struct CrossEntropyGradient {
  const float *weight, *normalizer;
  Targets targets;
  HD float operator()(float x, float t) const {
    return targets.Skips(t) ? 0.0f : *weight / *normalizer * (Logistic(x) - t);
  }
};

// The positive weight of each element: weights[c] in channel c, along axis 1, or the only one.
struct PosWeights {
  const float* weights;
  int64_t channels, inner;  // inner: elements of a channel that follow each other in memory
  HD float At(int64_t i) const { return weights[channels == 1 ? 0 : i / inner % channels]; }
};

// Computes -p t log s(x) - (1 - t) log(1 - s(x)) with a positive weight p: CrossEntropy is the case
// p = 1. With w = 1 + (p - 1) t this is (1 - t) x + w (max(-x, 0) + log(1 + exp(-|x|))).
struct WeightedCrossEntropy {
  const float *x, *t;
  float* loss;
  Targets targets;
  PosWeights pos;
  HD void operator()(int64_t i) const {
    const float v = x[i], w = 1 + (pos.At(i) - 1) * t[i];
    loss[i] = targets.Skips(t[i])
                  ? kIgnoredRow
                  : (1 - t[i]) * v + w * ((v < 0 ? -v : 0.0f) + log1pf(Exp(-fabsf(v))));
  }
};

// Writes dx = (1 - t - w s(-x)) * weight / normalizer, or 0 for a target that does not count.
struct WeightedCrossEntropyGradient {
  const float *x, *t, *weight, *normalizer;
  float* dx;
  Targets targets;
  PosWeights pos;
  HD void operator()(int64_t i) const {
    const float w = 1 + (pos.At(i) - 1) * t[i];
    dx[i] = targets.Skips(t[i]) ? 0.0f : *weight / *normalizer * (1 - t[i] - w * Logistic(-x[i]));
  }
};

// loss = -sum (t log s(x) + (1 - t) log(1 - s(x))) / normalizer, with s the logistic function and a
// target t from 0 to 1 for each score. With pos_weight, t log s(x) is multiplied by it.
class SigmoidCrossEntropyLoss final : public Layer {
 public:
  explicit SigmoidCrossEntropyLoss(const LayerSpec& spec)
      : spec_(spec), total_(spec, caffe::LossParameter::BATCH_SIZE) {
    const caffe::LossParameter& loss = spec.proto().loss_param();
    targets_ = {loss.has_ignore_label(), static_cast<float>(loss.ignore_label())};
    pos_weights_.assign(loss.pos_weight().begin(), loss.pos_weight().end());
    for (size_t i = 0; i < pos_weights_.size(); ++i) {
      if (pos_weights_[i] >= 0 && std::isfinite(pos_weights_[i])) continue;
      spec.FailIn(
          "loss_param", "pos_weight",
          Join("pos_weight is ", pos_weights_[i], "; it must be a finite factor, 0 or more"),
          static_cast<int>(i));
    }
  }

  void UseAllReduce(const AllReduceFn& replicas) override { total_.Use(replicas); }
  LabelCount* label_count() override { return &total_; }

  void Setup(SetupContext& ctx) override {
    ctx.UsesAllReduce();
    RequireF32(ctx, spec_);
    RequireEqualItems(ctx, spec_);
    const Shape& in = ctx.Input(0);
    total_.Plan(in.Count(), in.Rank() > 0 ? in[0] : 1);
    const auto weights = static_cast<int64_t>(pos_weights_.size());
    const int64_t channels = in.Rank() > 1 ? in[1] : 1;
    if (weights > 1 && weights != channels) {
      spec_.FailIn("loss_param", "pos_weight",
                   Join("pos_weight is given ", weights, " times for ", channels,
                        " channels; give one for each channel (axis 1), or one for all"));
    }
    inner_ = in.Rank() > 1 ? AxisRows(in, 1).inner : 1;
    ctx.Constants(pos_weights_);
    ctx.Output(0, {});
    ctx.Workspace(sizeof(LossAccumulators) + sizeof(float) * static_cast<size_t>(in.Count()));
    ctx.SaveInput(0);
    ctx.SaveInput(1);
    ctx.NotDifferentiable(1);
  }
  void Forward(const RunContext& run) override {
    auto* head = reinterpret_cast<LossAccumulators*>(run.Workspace().data());
    auto* loss = reinterpret_cast<float*>(head + 1);
    const float *x = run.Input(0).f32(), *t = run.Input(1).f32();
    const int64_t count = run.Input(0).Count();
    if (pos_weights_.empty()) {
      ForEach(run.device(), count, CrossEntropy{x, t, loss, targets_});
    } else {
      ForEach(run.device(), count, WeightedCrossEntropy{x, t, loss, targets_, PosWeightsOf(run)});
    }
    total_.Forward(run.device(), loss, head, run.Output(0).f32());
  }
  void Backward(const RunContext& run) override {
    const auto* head = reinterpret_cast<const LossAccumulators*>(run.Workspace().data());
    if (!pos_weights_.empty()) {
      ForEach(run.device(), run.Input(0).Count(),
              WeightedCrossEntropyGradient{run.Input(0).f32(), run.Input(1).f32(),
                                           run.GradOutput(0).f32(), &head->normalizer,
                                           run.GradInput(0).f32(), targets_, PosWeightsOf(run)});
      return;
    }
    Map(run.device(), CrossEntropyGradient{run.GradOutput(0).f32(), &head->normalizer, targets_},
        run.GradInput(0), run.Input(0), run.Input(1));
  }

 private:
  PosWeights PosWeightsOf(const RunContext& run) const {
    return {run.Constants(), static_cast<int64_t>(pos_weights_.size()), inner_};
  }

  LayerSpec spec_;
  LossNormalizer total_;
  Targets targets_{};
  std::vector<float> pos_weights_;  // one per channel, one for all, or empty
  int64_t inner_ = 1;               // of AxisRows along the channels
};

const RegisterLayer<SigmoidCrossEntropyLoss> kSigmoidCrossEntropyLoss(
    "SigmoidCrossEntropyLoss",
    {.text = "-sum (t log s(x) + (1 - t) log(1 - s(x))) / normalizer, with s(x) = 1 / (1 + "
             "e^-x).\n"
             "bottom 0: scores x. bottom 1: targets t of the same shape, from 0 to 1; a target "
             "does not count if its integer part is ignore_label. The top is a scalar.\n"
             "normalizer, by loss_param.normalization: BATCH_SIZE (default): the number of items; "
             "FULL: the number of targets; VALID: the number of targets that are not ignored; "
             "NONE: 1.\n"
             "loss_param.pos_weight p, as in PyTorch's BCEWithLogitsLoss: t log s(x) becomes p t "
             "log s(x). One value holds for all targets; several are for the channels (axis 1). "
             "With as many negative targets as p times the positive ones, both count equally.",
     .param = "loss_param",
     .arity = {.min_in = 2, .max_in = 2}});

}  // namespace
}  // namespace trainer
