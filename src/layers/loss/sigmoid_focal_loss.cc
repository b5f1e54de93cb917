#include <cmath>

#include "loss/loss_normalizer.h"
#include "shared/checks.h"
#include "trainer/backend/loops/math.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// The focal loss of a score x and its target t: a m^gamma ce, with ce the cross entropy of
// p = s(x), m = p (1 - t) + (1 - p) t the part of the probability that misses the target, and
// a = alpha t + (1 - alpha) (1 - t), or 1 if alpha is negative.
struct SigmoidFocal {
  float gamma, alpha;
  bool has_ignore;  // a target does not count if its integer part is `ignore`
  float ignore;

  HD bool Skips(float t) const { return has_ignore && truncf(t) == ignore; }
  HD float Weight(float t) const { return alpha < 0 ? 1.0f : alpha * t + (1 - alpha) * (1 - t); }
  // Returns m^gamma.
  HD float Modulate(float m) const { return gamma == 2 ? m * m : powf(m, gamma); }

  // Returns max(x, 0) - x t + log(1 + exp(-|x|)), the cross entropy in a form that cannot overflow.
  HD static float CrossEntropyOf(float x, float t) {
    return (x > 0 ? x : 0.0f) - x * t + log1pf(Exp(-fabsf(x)));
  }
  HD float Loss(float x, float t) const {
    const float m = Logistic(x) * (1 - t) + Logistic(-x) * t;
    return Weight(t) * Modulate(m) * CrossEntropyOf(x, t);
  }
  // Returns the derivative by x. The derivative of m is p (1 - p) (1 - 2 t), and the quotient
  // p (1 - p) / m stays finite where m^(gamma - 1) does not.
  HD float Slope(float x, float t) const {
    const float p = Logistic(x), q = Logistic(-x), m = p * (1 - t) + q * t;
    const float factor = Modulate(m);
    const float bend =
        m > 0 ? gamma * factor * (p * q / m) * (1 - 2 * t) * CrossEntropyOf(x, t) : 0.0f;
    return Weight(t) * (factor * (p - t) + bend);
  }
};

// Writes the loss of each element, or the mark of a target that does not count.
struct WriteSigmoidFocal {
  const float *x, *t;
  float* loss;
  SigmoidFocal focal;
  HD void operator()(int64_t i) const {
    loss[i] = focal.Skips(t[i]) ? kIgnoredRow : focal.Loss(x[i], t[i]);
  }
};

// Returns dx of an element, or 0 for a target that does not count.
struct SigmoidFocalGradient {
  const float *weight, *normalizer;
  SigmoidFocal focal;
  HD float operator()(float x, float t) const {
    return focal.Skips(t) ? 0.0f : *weight / *normalizer * focal.Slope(x, t);
  }
};

// loss = sum a m^gamma ce / normalizer (see SigmoidFocal), for scores and targets from 0 to 1 of
// the same shape. Source: Lin et al., "Focal loss for dense object detection", arXiv:1708.02002;
// the form for targets between 0 and 1 is torchvision's.
class SigmoidFocalLoss final : public Layer {
 public:
  explicit SigmoidFocalLoss(const LayerSpec& spec)
      : spec_(spec), total_(spec, caffe::LossParameter::BATCH_SIZE) {
    const caffe::FocalLossParameter& param = spec.proto().focal_loss_param();
    const caffe::LossParameter& loss = spec.proto().loss_param();
    if (!(param.gamma() >= 0 && std::isfinite(param.gamma()))) {
      spec.FailIn("focal_loss_param", "gamma",
                  Join("gamma is ", param.gamma(),
                       "; it must be 0 or more: 0 is the plain cross entropy, 2 is usual"));
    }
    if (param.alpha() != -1 && !(param.alpha() >= 0 && param.alpha() <= 1)) {
      spec.FailIn("focal_loss_param", "alpha",
                  Join("alpha is ", param.alpha(),
                       "; it must be from 0 to 1, the weight of targets that are 1, or -1 for no "
                       "weights"));
    }
    focal_ = {param.gamma(), param.alpha(), loss.has_ignore_label(),
              static_cast<float>(loss.ignore_label())};
  }

  void UseAllReduce(const AllReduceFn& replicas) override { total_.Use(replicas); }
  LabelCount* label_count() override { return &total_; }

  void Setup(SetupContext& ctx) override {
    ctx.UsesAllReduce();
    RequireF32(ctx, spec_);
    RequireEqualItems(ctx, spec_);
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
            WriteSigmoidFocal{run.Input(0).f32(), run.Input(1).f32(), loss, focal_});
    total_.Forward(run.device(), loss, head, run.Output(0).f32());
  }
  void Backward(const RunContext& run) override {
    const auto* head = reinterpret_cast<const LossAccumulators*>(run.Workspace().data());
    Map(run.device(), SigmoidFocalGradient{run.GradOutput(0).f32(), &head->normalizer, focal_},
        run.GradInput(0), run.Input(0), run.Input(1));
  }

 private:
  LayerSpec spec_;
  LossNormalizer total_;
  SigmoidFocal focal_{};
};

const RegisterLayer<SigmoidFocalLoss> kSigmoidFocalLoss(
    "SigmoidFocalLoss",
    {.text =
         "Sigmoid cross entropy in which targets that the net already gets right count little.\n"
         "sum a (1 - q)^gamma (-log q) / normalizer, with s(x) = 1 / (1 + e^-x).\n"
         "q is s(x) if the target is 1, and 1 - s(x) if it is 0. a is alpha or 1 - alpha in "
         "these two cases, and 1 for alpha: -1. For targets between 0 and 1 the formula is "
         "that of torchvision's sigmoid_focal_loss. gamma (default 2): 0 is "
         "SigmoidCrossEntropyLoss.\n"
         "bottom 0: scores x. bottom 1: targets of the same shape, from 0 to 1; a target does "
         "not count if its integer part is ignore_label. The top is a scalar.\n"
         "normalizer, by loss_param.normalization: BATCH_SIZE (default): the number of items; "
         "FULL: the number of targets; VALID: the number of targets that are not ignored; "
         "NONE: 1.",
     .param = "focal_loss_param",
     .arity = {.min_in = 2, .max_in = 2}});

}  // namespace
}  // namespace trainer
