#include <cmath>

#include "shared/checks.h"
#include "trainer/backend/loops/reduce.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Computes the weighted difference of element i, its loss and the slope of the loss. The weights
// `inside` and `outside` may be null.
struct SmoothL1 {
  const float *a, *b, *inside, *outside;
  float square;  // sigma^2

  // Returns in_i * (a_i - b_i), the argument of f.
  HD float Difference(int64_t i) const {
    return (a[i] - b[i]) * (inside == nullptr ? 1.0f : inside[i]);
  }
  HD float Outside(int64_t i) const { return outside == nullptr ? 1.0f : outside[i]; }

  // Returns term i of the loss, out_i * f(d).
  HD float operator()(int64_t i) const {
    const float d = Difference(i), size = fabsf(d);
    const float loss = size < 1 / square ? 0.5f * square * d * d : size - 0.5f / square;
    return loss * Outside(i);
  }
  // Returns the derivative of that term by a_i.
  HD float Slope(int64_t i) const {
    const float d = Difference(i);
    const float sign = d > 0 ? 1.0f : d < 0 ? -1.0f : d;  // keeps NaN
    const float slope = fabsf(d) < 1 / square ? square * d : sign;
    return slope * Outside(i) * (inside == nullptr ? 1.0f : inside[i]);
  }
};

// Writes element i of an input's gradient.
struct WriteSlope {
  SmoothL1 loss;
  const float* weight;
  float scale;  // 1 / N for the first input, -1 / N for the second
  float* to;
  HD void operator()(int64_t i) const { to[i] = *weight * scale * loss.Slope(i); }
};

// loss = sum out * f(in * (a - b)) / N, with f(d) = (sigma d)^2 / 2 for |d| < 1 / sigma^2, else |d|
// - 1 / (2 sigma^2). The weights `in` and `out` are optional bottoms. Source: Girshick, "Fast
// R-CNN", arXiv:1504.08083.
class SmoothL1Loss final : public Layer {
 public:
  explicit SmoothL1Loss(const LayerSpec& spec) : spec_(spec) {}

  void Setup(SetupContext& ctx) override {
    RequireF32(ctx, spec_);
    RequireEqualItems(ctx, spec_);
    const float sigma = spec_.proto().smooth_l1_loss_param().sigma();
    square_ = sigma * sigma;
    if (!(sigma > 0) || !std::isnormal(square_) || !std::isfinite(1 / square_)) {
      spec_.FailIn(
          "smooth_l1_loss_param", "sigma",
          Join("sigma is ", sigma, "; it must be above 0, and its square must be in the range ",
               "of float: the square ends where |x| is 1 / sigma^2"));
    }
    const Shape& in = ctx.Input(0);
    items_ = static_cast<float>(in.Rank() > 0 ? in[0] : 1);
    ctx.Output(0, {});
    for (int i = 0; i < ctx.NumInputs(); ++i) {
      ctx.SaveInput(i);
      if (i > 1) ctx.NotDifferentiable(i);
    }
  }

  void Forward(const RunContext& run) override {
    ReduceSum(run.device(), run.Input(0).Count(), LossOf(run), 1 / items_, run.Output(0).f32());
  }

  void Backward(const RunContext& run) override {
    for (int i = 0; i < 2; ++i) {
      if (!run.NeedsGradInput(i)) continue;
      ForEach(run.device(), run.Input(0).Count(),
              WriteSlope{LossOf(run), run.GradOutput(0).f32(), (i == 0 ? 1 : -1) / items_,
                         run.GradInput(i).f32()});
    }
  }

 private:
  // Returns the terms of the loss over this pass's inputs.
  SmoothL1 LossOf(const RunContext& run) const {
    const auto weight = [&](int i) { return run.NumInputs() > i ? run.Input(i).f32() : nullptr; };
    return {run.Input(0).f32(), run.Input(1).f32(), weight(2), weight(3), square_};
  }

  LayerSpec spec_;
  float square_ = 1, items_ = 1;
};

const RegisterLayer<SmoothL1Loss> kSmoothL1Loss(
    "SmoothL1Loss",
    {.text = "The smooth L1 loss of two blobs, as in Fast R-CNN.\n"
             "sum out * f(in * (a - b)) / N, with f(x) = (sigma * x)^2 / 2 if |x| < 1 / sigma^2, "
             "else |x| - 1 / (2 sigma^2).\n"
             "bottom 0 and 1: a and b of the same shape (N, ...); both may get a gradient. bottom "
             "2 and 3, of the same shape: the weights `in` and `out`; default 1. The top is a "
             "scalar.",
     .param = "smooth_l1_loss_param",
     .arity = {.min_in = 2, .max_in = 4}});

}  // namespace
}  // namespace trainer
