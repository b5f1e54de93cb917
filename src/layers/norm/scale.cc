#include "shared/broadcast_operand.h"

namespace trainer {
namespace {

// y = x * s + b, where s has some axes of x and is broadcast over the others: a parameter, or a
// second input. The bias b is optional and has the shape of s.
class Scale final : public Layer {
 public:
  explicit Scale(const LayerSpec& spec) : spec_(spec) {}

  void Setup(SetupContext& ctx) override {
    const caffe::ScaleParameter& param = spec_.proto().scale_param();
    small_ = ReadBroadcastOperand(ctx, spec_, "scale_param", param.axis(), param.num_axes());
    if (small_.learned) {
      caffe::FillerParameter filler = param.filler();
      if (!param.has_filler()) filler.set_value(1);
      ctx.Param("scale", small_.shape, filler);
    }
    bias_ = -1;
    if (param.bias_term()) bias_ = ctx.Param("bias", small_.shape, param.bias_filler());
    if (bias_ >= 0) RequireOrder(ctx);
    ctx.Output(0, ctx.Input(0), ctx.InputType(0));
    ctx.SaveInput(0);
    if (!small_.learned) ctx.SaveInput(1);
  }

  void Forward(const RunContext& run) override {
    ScaleShift(run.device(), small_.broadcast, run.Input(0), Factor(run),
               bias_ >= 0 ? run.Param(bias_) : nullptr, run.Output(0));
  }

  bool Recomputes() const override { return true; }
  void Backward(const RunContext& run) override {
    const ConstTensor &dy = run.GradOutput(0), &x = run.Input(0);
    if (bias_ >= 0 && run.GradParam(bias_) != nullptr) {
      ReduceBroadcast(run.device(), small_.broadcast, dy, nullptr, run.GradParam(bias_));
    }
    if (small_.learned) {
      if (float* to = run.GradParam(0)) {
        ReduceBroadcast(run.device(), small_.broadcast, dy, &x, to);
      }
    } else if (run.NeedsGradInput(1)) {
      run.device().Zero(run.GradInput(1).data, run.GradInput(1).Bytes());
      ReduceBroadcast(run.device(), small_.broadcast, dy, &x, run.GradInput(1).f32());
    }
    if (!run.NeedsGradInput(0)) return;
    ScaleShift(run.device(), small_.broadcast, dy, Factor(run), nullptr, run.GradInput(0));
  }

 private:
  // Returns s: the parameter or the second input.
  const float* Factor(const RunContext& run) const {
    return small_.learned ? run.Param(0) : run.Input(1).f32();
  }

  // Throws kConfig for a bias whose memory order differs from the second bottom's, which happens if
  // that has 4 axes: an image is stored as NHWC and a parameter in row-major order.
  void RequireOrder(const SetupContext& ctx) const {
    if (small_.learned || !small_.shape.IsImage() || ctx.Input(0).Count() == 1) return;
    spec_.FailIn("scale_param", "bias_term",
                 "bias_term with a second bottom of 4 axes is not supported; use a Bias layer");
  }

  LayerSpec spec_;
  BroadcastOperand small_;
  int bias_ = -1;
};

const RegisterLayer<Scale> kScale(
    "Scale",
    {.text = "y = x * s [+ b]. s has some axes of x and is broadcast over the others.\n"
             "One bottom: s is a parameter, initially 1, with num_axes axes (default 1; -1: all), "
             "starting at `axis` (default 1). Two bottoms: s is the second, aligned at `axis`. "
             "bias_term adds a parameter b with the shape of s.",
     .param = "scale_param",
     .arity = {.min_in = 1, .max_in = 2},
     .dtypes = DtypePolicy::kConfigurable,
     .second_input = DtypePolicy::kF32});

}  // namespace
}  // namespace trainer
