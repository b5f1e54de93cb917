#include "shared/blob_shapes.h"

namespace trainer {
namespace {

// Outputs that the program fills from outside the net. They keep their memory, so Forward does
// nothing and the values last until they are replaced.
class Input final : public Layer {
 public:
  explicit Input(const LayerSpec& spec) : spec_(spec) {}

  void Setup(SetupContext& ctx) override {
    const auto& shapes = spec_.proto().input_param().shape();
    if (shapes.empty()) spec_.Fail("input_param has no shape; give one, or one per top");
    CheckPerTop(spec_, "input_param", "shape", shapes.size());
    for (int i = 0; i < ctx.NumOutputs(); ++i) {
      const int at = shapes.size() == 1 ? 0 : i;
      ctx.Output(i, ShapeOf(spec_, "input_param", "shape", shapes[at], at));
      ctx.OutputPersists(i);
    }
  }
  void Forward(const RunContext&) override {}

 private:
  LayerSpec spec_;
};

const RegisterLayer<Input> kInput(
    "Input", {.text = "Outputs that the program fills from outside the net; zeros until then.\n"
                      "input_param.shape: one for all tops, or one per top.",
              .param = "input_param",
              .arity = {.min_in = 0, .max_in = 0, .min_out = 1, .max_out = -1}});

}  // namespace
}  // namespace trainer
