#include "shared/broadcast_operand.h"
#include "trainer/backend/loops/map.h"

namespace trainer {
namespace {

// Copies a gradient.
struct SameBias {
  HD float operator()(float dy) const { return dy; }
};

// y = x + b, where b has some axes of x and is broadcast over the others: a parameter, or a second
// input.
class Bias final : public Layer {
 public:
  explicit Bias(const LayerSpec& spec) : spec_(spec) {}

  void Setup(SetupContext& ctx) override {
    const caffe::BiasParameter& param = spec_.proto().bias_param();
    small_ = ReadBroadcastOperand(ctx, spec_, "bias_param", param.axis(), param.num_axes());
    if (small_.learned) ctx.Param("bias", small_.shape, param.filler());
    ctx.Output(0, ctx.Input(0), ctx.InputType(0));
    ctx.AllowInPlace();
  }

  bool RecomputesAtCost() const override { return true; }
  void Forward(const RunContext& run) override {
    const float* bias = small_.learned ? run.Param(0) : run.Input(1).f32();
    ScaleShift(run.device(), small_.broadcast, run.Input(0), nullptr, bias, run.Output(0));
  }

  void Backward(const RunContext& run) override {
    const ConstTensor& dy = run.GradOutput(0);
    if (small_.learned) {
      if (float* to = run.GradParam(0)) {
        ReduceBroadcast(run.device(), small_.broadcast, dy, nullptr, to);
      }
    } else if (run.NeedsGradInput(1)) {
      run.device().Zero(run.GradInput(1).data, run.GradInput(1).Bytes());
      ReduceBroadcast(run.device(), small_.broadcast, dy, nullptr, run.GradInput(1).f32());
    }
    if (!run.NeedsGradInput(0) || run.GradInput(0).data == dy.data) return;
    Map(run.device(), SameBias{}, run.GradInput(0), dy);
  }

 private:
  LayerSpec spec_;
  BroadcastOperand small_;
};

const RegisterLayer<Bias> kBias(
    "Bias", {.text = "y = x + b. b has some axes of x and is broadcast over the others.\n"
                     "One bottom: b is a parameter with num_axes axes (default 1; -1: all), "
                     "starting at `axis` (default 1). Two bottoms: b is the second, aligned at "
                     "`axis`. May work in place.",
             .param = "bias_param",
             .arity = {.min_in = 1, .max_in = 2},
             .dtypes = DtypePolicy::kConfigurable,
             .second_input = DtypePolicy::kF32});

}  // namespace
}  // namespace trainer
