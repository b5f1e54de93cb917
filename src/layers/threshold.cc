#include "trainer/backend/map.h"
#include "trainer/layers/layer.h"

namespace trainer {
namespace {

struct Above {
  float threshold;
  HD float operator()(float x) const { return x > threshold ? 1.0f : 0.0f; }
};

class Threshold final : public Layer {
 public:
  explicit Threshold(const LayerSpec& spec)
      : threshold_(spec.proto().threshold_param().threshold()) {}

  void Describe(DescribeContext& plan) override {
    plan.Out(0, plan.In(0), plan.InType(0));
    plan.NoGradient(0);
    plan.AllowInPlace();
  }
  void Forward(const RunContext& run) override {
    Map(run.device(), Above{threshold_}, run.Out(0), run.In(0));
  }

 private:
  float threshold_;
};

const RegisterLayer<Threshold> kThreshold(
    "Threshold", {.text = "y = 1 if x > threshold (default 0), else 0. Any shape; no gradient.",
                  .param = "threshold_param",
                  .storage = Storage::kChosen});

}  // namespace
}  // namespace trainer
