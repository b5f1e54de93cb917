#include "shared/checks.h"

namespace trainer {
namespace {

// y_i = exp(x_i) / sum_j exp(x_j) along `axis`, by the device's SoftmaxPrimitive.
class Softmax final : public Layer {
 public:
  explicit Softmax(const LayerSpec& spec) : spec_(spec) {}

  void Setup(SetupContext& ctx) override {
    const Shape& in = ctx.Input(0);
    const int axis = spec_.proto().softmax_param().axis();
    desc_ = {.shape = in,
             .axis = AxisIn(spec_, "softmax_param", "axis", axis, in),
             .dtype = ctx.InputType(0)};
    ctx.Output(0, in, ctx.InputType(0));
    ctx.SaveOutput(0);
    ctx.AllowInPlace();
  }
  void Prepare(PrepareContext& ctx) override { softmax_ = ctx.device().NewSoftmax(desc_); }
  void Forward(const RunContext& run) override { softmax_->Forward(run.Input(0), run.Output(0)); }
  void Backward(const RunContext& run) override {
    softmax_->Backward(run.Output(0), run.GradOutput(0), run.GradInput(0));
  }

 private:
  LayerSpec spec_;
  SoftmaxDesc desc_;
  std::unique_ptr<SoftmaxPrimitive> softmax_;
};

const RegisterLayer<Softmax> kSoftmax(
    "Softmax", {.text = "y_i = exp(x_i) / sum_j exp(x_j) along `axis` (default 1). Any shape; may "
                        "work in place.",
                .param = "softmax_param",
                .dtypes = DtypePolicy::kConfigurable});

}  // namespace
}  // namespace trainer
