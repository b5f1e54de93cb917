#include "trainer/backend/loops/map.h"
#include "trainer/layers/layer.h"

namespace trainer {
namespace {

// Returns 1 for x above the threshold, else 0.
struct Above {
  float threshold;
  HD float operator()(float x) const { return x > threshold ? 1.0f : 0.0f; }
};

// y = 1 if x > threshold, else 0. The step has no useful gradient, so the input gets none.
class Threshold final : public Layer {
 public:
  explicit Threshold(const LayerSpec& spec)
      : threshold_(spec.proto().threshold_param().threshold()) {}

  void Setup(SetupContext& ctx) override {
    ctx.Output(0, ctx.Input(0), ctx.InputType(0));
    ctx.NotDifferentiable(0);
    ctx.AllowInPlace();
  }
  void Forward(const RunContext& run) override {
    Map(run.device(), Above{threshold_}, run.Output(0), run.Input(0));
  }

 private:
  float threshold_;
};

const RegisterLayer<Threshold> kThreshold(
    "Threshold", {.text = "y = 1 if x > threshold (default 0), else 0. Any shape; no gradient.",
                  .param = "threshold_param",
                  .dtypes = DtypePolicy::kConfigurable});

}  // namespace
}  // namespace trainer
