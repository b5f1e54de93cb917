#include "loss/loss_normalizer.h"
#include "shared/checks.h"
#include "trainer/backend/loops/math.h"

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

// loss = -sum (t log s(x) + (1 - t) log(1 - s(x))) / normalizer, with s the logistic function and a
// target t from 0 to 1 for each score.
class SigmoidCrossEntropyLoss final : public Layer {
 public:
  explicit SigmoidCrossEntropyLoss(const LayerSpec& spec)
      : spec_(spec), total_(spec, caffe::LossParameter::BATCH_SIZE) {
    const caffe::LossParameter& loss = spec.proto().loss_param();
    targets_ = {loss.has_ignore_label(), static_cast<float>(loss.ignore_label())};
  }

  void UseAllReduce(const AllReduceFn& replicas) override { total_.Use(replicas); }
  LabelCount* label_count() override { return &total_; }

  void Setup(SetupContext& ctx) override {
    ctx.UsesAllReduce();
    RequireF32(ctx, spec_);
    RequireEqualShapes(ctx, spec_);
    const Shape& in = ctx.Input(0);
    total_.Plan(in.Count(), in.Rank() > 0 ? in[0] : 1);
    ctx.Output(0, {});
    ctx.Workspace(sizeof(LossAccumulators) + sizeof(float) * static_cast<size_t>(in.Count()));
    ctx.SaveInput(0);
    ctx.SaveInput(1);
    ctx.NotDifferentiable(1);
  }
  void Forward(const RunContext& run) override {
    auto* head = reinterpret_cast<LossAccumulators*>(run.Workspace().data());
    auto* loss = reinterpret_cast<float*>(head + 1);
    ForEach(run.device(), run.Input(0).Count(),
            CrossEntropy{run.Input(0).f32(), run.Input(1).f32(), loss, targets_});
    total_.Forward(run.device(), loss, head, run.Output(0).f32());
  }
  void Backward(const RunContext& run) override {
    const auto* head = reinterpret_cast<const LossAccumulators*>(run.Workspace().data());
    Map(run.device(), CrossEntropyGradient{run.GradOutput(0).f32(), &head->normalizer, targets_},
        run.GradInput(0), run.Input(0), run.Input(1));
  }

 private:
  LayerSpec spec_;
  LossNormalizer total_;
  Targets targets_{};
};

const RegisterLayer<SigmoidCrossEntropyLoss> kSigmoidCrossEntropyLoss(
    "SigmoidCrossEntropyLoss",
    {.text = "-sum (t log s(x) + (1 - t) log(1 - s(x))) / normalizer, with s(x) = 1 / (1 + "
             "e^-x).\n"
             "bottom 0: scores x. bottom 1: targets t of the same shape, from 0 to 1; a target "
             "does not count if its integer part is ignore_label. The top is a scalar.\n"
             "normalizer, by loss_param.normalization: BATCH_SIZE (default): the number of items; "
             "FULL: the number of targets; VALID: the number of targets that are not ignored; "
             "NONE: 1.",
     .param = "loss_param",
     .arity = {.min_in = 2, .max_in = 2}});

}  // namespace
}  // namespace trainer
