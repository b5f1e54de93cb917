#include <cmath>

#include "shared/checks.h"
#include "trainer/backend/loops/map.h"
#include "trainer/backend/loops/reduce.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Addresses images in memory: (N, H, W, C).
struct Places {
  const float* x;
  int64_t channels, height, width;

  HD int64_t Column(int64_t i) const { return i / channels % width; }
  HD int64_t Row(int64_t i) const { return i / (channels * width) % height; }
  // Return the differences to the neighbours below and to the right; 0 at the border.
  HD float Down(int64_t i) const {
    return Row(i) + 1 < height ? x[i + channels * width] - x[i] : 0.0f;
  }
  HD float Right(int64_t i) const { return Column(i) + 1 < width ? x[i + channels] - x[i] : 0.0f; }
};

// Returns term i of the sum, (d^2 + r^2)^(power / 2), for the differences d and r to the values
// below and to the right.
struct VariationTerm {
  Places places;
  float half_power;
  HD float operator()(int64_t i) const {
    const float down = places.Down(i), right = places.Right(i);
    const float square = down * down + right * right;
    return half_power == 1 ? square : powf(square, half_power);
  }
};

// Computes the derivative of the sum by x_i, which appears in its own term and in the terms above
// and to the left.
struct TermGradient {
  Places places;
  float half_power, factor;
  const float* weight;
  float* dx;

  // Returns twice the derivative of a term by its square; 0 if the square is 0 (for powers other
  // than 2).
  HD float Slope(int64_t i) const {
    const float down = places.Down(i), right = places.Right(i);
    const float square = down * down + right * right;
    if (half_power == 1) return 2;
    return square > 0 ? 2 * half_power * powf(square, half_power - 1) : 0.0f;
  }
  HD void operator()(int64_t i) const {
    float sum = -Slope(i) * (places.Down(i) + places.Right(i));
    const int64_t above = i - places.channels * places.width, left = i - places.channels;
    if (places.Row(i) > 0) sum += Slope(above) * places.Down(above);
    if (places.Column(i) > 0) sum += Slope(left) * places.Right(left);
    dx[i] = *weight * factor * sum;
  }
};

// loss = sum (d^2 + r^2)^(power / 2) / N over the differences of neighbouring pixels, which makes
// images smooth. Source: Mahendran and Vedaldi, arXiv:1412.0035.
class TotalVariationLoss final : public Layer {
 public:
  explicit TotalVariationLoss(const LayerSpec& spec) : spec_(spec) {
    const float power = spec.proto().total_variation_loss_param().power();
    if (!(power >= 1 && power <= 4)) {
      spec.FailIn("total_variation_loss_param", "power",
                  Join("power is ", power, "; it must be from 1 (keeps edges) to 4"));
    }
    half_power_ = power / 2;
  }

  void Setup(SetupContext& ctx) override {
    RequireF32(ctx, spec_);
    RequireRank(ctx, spec_, 0, 4, 4, "an image (N, C, H, W)");
    const Shape& in = ctx.Input(0);
    factor_ = 1 / static_cast<float>(in[0]);
    ctx.Output(0, {});
    ctx.SaveInput(0);
  }
  void Forward(const RunContext& run) override {
    ReduceSum(run.device(), run.Input(0).Count(), VariationTerm{PlacesOf(run), half_power_},
              factor_, run.Output(0).f32());
  }
  void Backward(const RunContext& run) override {
    ForEach(run.device(), run.Input(0).Count(),
            TermGradient{PlacesOf(run), half_power_, factor_, run.GradOutput(0).f32(),
                         run.GradInput(0).f32()});
  }

 private:
  static Places PlacesOf(const RunContext& run) {
    const Shape& shape = run.Input(0).shape;
    return {run.Input(0).f32(), shape[1], shape[2], shape[3]};
  }

  LayerSpec spec_;
  float half_power_ = 1, factor_ = 1;
};

const RegisterLayer<TotalVariationLoss> kTotalVariationLoss(
    "TotalVariationLoss",
    {.text = "How much neighbouring values of an image differ: sum (d^2 + r^2)^(power / 2) / N.\n"
             "bottom (N, C, H, W); d and r are the differences to the values below and to the "
             "right in the same channel, 0 at the border. power: 2 (default) is smooth, 1 keeps "
             "edges (Mahendran and Vedaldi, arXiv:1412.0035). The top is a scalar.",
     .param = "total_variation_loss_param"});

}  // namespace
}  // namespace trainer
