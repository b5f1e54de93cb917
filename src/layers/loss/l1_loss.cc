#include <cmath>

#include "shared/checks.h"
#include "trainer/backend/loops/reduce.h"

namespace trainer {
namespace {

// Returns term i of the sum, |a_i - b_i|.
struct AbsoluteDifference {
  const float *a, *b;
  HD float operator()(int64_t i) const { return fabsf(a[i] - b[i]); }
};

// Returns the gradient of x: the loss weight times the sign of x - y, divided by N; scale is 1 / N.
// The sign of 0 is 0, and of NaN NaN.
struct SignOfDifference {
  const float* weight;
  float scale;
  HD float operator()(float x, float y) const {
    const float d = x - y;
    return *weight * scale * (d > 0 ? 1.0f : d < 0 ? -1.0f : d);
  }
};

// loss = sum |a - b| / N over two inputs of one shape (N, ...); both may get a gradient.
class L1Loss final : public Layer {
 public:
  explicit L1Loss(const LayerSpec& spec) : spec_(spec) {}

  void Setup(SetupContext& ctx) override {
    RequireF32(ctx, spec_);
    RequireEqualItems(ctx, spec_);
    const Shape& in = ctx.Input(0);
    items_ = static_cast<float>(in.Rank() > 0 ? in[0] : 1);
    ctx.Output(0, {});
    ctx.SaveInput(0);
    ctx.SaveInput(1);
  }
  void Forward(const RunContext& run) override {
    ReduceSum(run.device(), run.Input(0).Count(),
              AbsoluteDifference{run.Input(0).f32(), run.Input(1).f32()}, 1 / items_,
              run.Output(0).f32());
  }
  void Backward(const RunContext& run) override {
    for (int i = 0; i < 2; ++i) {
      if (!run.NeedsGradInput(i)) continue;
      Map(run.device(), SignOfDifference{run.GradOutput(0).f32(), 1 / items_}, run.GradInput(i),
          run.Input(i), run.Input(1 - i));
    }
  }

 private:
  LayerSpec spec_;
  float items_ = 1;
};

const RegisterLayer<L1Loss> kL1Loss(
    "L1Loss", {.text = "sum |a - b| / N, for two inputs of the same shape (N, ...).\n"
                       "Both may get a gradient, which is 0 where they are equal. The top is a "
                       "scalar. PyTorch's L1Loss divides by the number of elements: for the same, "
                       "set loss_weight to 1 / the elements of an item. SmoothL1Loss is its form "
                       "with a square near 0.",
               .param = "",
               .arity = {.min_in = 2, .max_in = 2}});

}  // namespace
}  // namespace trainer
