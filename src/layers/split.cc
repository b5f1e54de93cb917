#include "trainer/backend/map.h"
#include "trainer/layers/layer.h"

namespace trainer {
namespace {

struct Add {
  HD float operator()(float a, float b) const { return a + b; }
};

class Split final : public Layer {
 public:
  explicit Split(const LayerSpec&) {}

  void Plan(PlanContext& plan) override {
    for (int i = 0; i < plan.NumOut(); ++i) plan.OutIsView(i, 0, plan.In(0));
  }
  void Forward(RunContext&) override {}

  void Backward(RunContext& run) override {
    ConstTensor sum;
    for (int i = 0; i < run.NumOut(); ++i) {
      if (!run.HasGradOut(i)) continue;
      if (sum.data != nullptr) {
        Map(run.device(), Add{}, run.GradIn(0), sum, run.GradOut(i));
        sum = run.GradIn(0);
      } else {
        sum = run.GradOut(i);
      }
    }
  }
};

const RegisterLayer<Split> kSplit(
    "Split", {.text = "Hands its input to several readers; their gradients are added.\n"
                      "Put in by the program wherever a blob is read more than once; copies "
                      "nothing.\n"
                      "bottom: any shape; tops: the same shape.",
              .param = "",
              .arity = {.min_in = 1, .max_in = 1, .min_out = 1, .max_out = -1},
              .storage = Storage::kFollows});

}  // namespace
}  // namespace trainer
