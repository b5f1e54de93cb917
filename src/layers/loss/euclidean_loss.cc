#include "shared/checks.h"
#include "trainer/backend/loops/reduce.h"

namespace trainer {
namespace {

// Returns term i of the sum, (a_i - b_i)^2.
struct SquaredDifference {
  const float *a, *b;
  HD float operator()(int64_t i) const { return (a[i] - b[i]) * (a[i] - b[i]); }
};

// Returns the gradient of x: the loss weight times (x - y) / N, with scale = 1 / N.
struct Difference {
  const float* weight;
  float scale;
  HD float operator()(float x, float y) const { return *weight * scale * (x - y); }
};

// loss = sum (a - b)^2 / (2 N) over two inputs of one shape (N, ...); both may get a gradient.
class EuclideanLoss final : public Layer {
 public:
  explicit EuclideanLoss(const LayerSpec& spec) : spec_(spec) {}

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
              SquaredDifference{run.Input(0).f32(), run.Input(1).f32()}, 0.5f / items_,
              run.Output(0).f32());
  }
  void Backward(const RunContext& run) override {
    for (int i = 0; i < 2; ++i) {
      if (!run.NeedsGradInput(i)) continue;
      Map(run.device(), Difference{run.GradOutput(0).f32(), 1 / items_}, run.GradInput(i),
          run.Input(i), run.Input(1 - i));
    }
  }

 private:
  LayerSpec spec_;
  float items_ = 1;
};

const RegisterLayer<EuclideanLoss> kEuclideanLoss(
    "EuclideanLoss", {.text = "sum (a - b)^2 / (2 N), for two inputs of the same shape (N, ...).\n"
                              "Both may get a gradient. The top is a scalar.",
                      .param = "",
                      .arity = {.min_in = 2, .max_in = 2}});

}  // namespace
}  // namespace trainer
