#include "trainer/layers/layer.h"

namespace trainer {
namespace {

// Reads its inputs and does nothing, so that the net does not report them as outputs.
class Silence final : public Layer {
 public:
  explicit Silence(const LayerSpec&) {}

  void Setup(SetupContext& ctx) override {
    for (int i = 0; i < ctx.NumInputs(); ++i) ctx.NotDifferentiable(i);
  }
  void Forward(const RunContext&) override {}
};

const RegisterLayer<Silence> kSilence(
    "Silence", {.text = "Reads its inputs and does nothing, so they are not outputs of the net.\n"
                        "bottoms: any shapes; no top. They get no gradient.",
                .param = "",
                .arity = {.min_in = 1, .max_in = -1, .min_out = 0, .max_out = 0},
                .dtypes = DtypePolicy::kAny});

}  // namespace
}  // namespace trainer
