#include "channel_sums.h"
#include "checks.h"
#include "conv_geometry.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

class Convolution final : public Layer {
 public:
  explicit Convolution(const LayerSpec& spec) : spec_(spec) {}

  void Plan(PlanContext& plan) override {
    const caffe::ConvolutionParameter& param = spec_.proto().convolution_param();
    if (plan.NumIn() != plan.NumOut()) {
      spec_.Fail(Join("has ", plan.NumIn(), " bottoms and ", plan.NumOut(),
                      " tops; give one top per bottom"));
    }
    RequireEqualShapes(plan, spec_);
    ConvDesc desc = ReadConvGeometry(spec_, plan.In(0), plan.InType(0));
    desc.out_channels = ReadNumOutput(spec_);
    desc.bias = param.bias_term();
    RequireGroup(spec_, desc.group, desc.out_channels, "outputs (num_output)");
    RequireFit(spec_, desc);

    plan.Param("weight", desc.WeightShape(), param.weight_filler());
    if (desc.bias) plan.Param("bias", {desc.out_channels}, param.bias_filler());
    for (int i = 0; i < plan.NumIn(); ++i) {
      plan.Out(i, desc.OutShape(), plan.InType(i));
      plan.KeepInput(i);
    }
    conv_ = plan.device().MakeConv(desc);
    plan.Scratch(conv_->ScratchBytes());
    macs_ = desc.Macs() * plan.NumIn();
  }

  void Forward(RunContext& run) override {
    for (int i = 0; i < run.NumIn(); ++i) {
      conv_->Forward(run.In(i), run.Param(0), run.ParamIf(1), run.Out(i), run.Scratch());
    }
  }

  void Backward(RunContext& run) override {
    for (int i = 0; i < run.NumIn(); ++i) {
      if (!run.HasGradOut(i)) {
        if (run.WantsGradIn(i)) run.device().Zero(run.GradIn(i).data, run.GradIn(i).Bytes());
        continue;
      }
      if (run.GradParam(0) != nullptr) {
        conv_->BackwardWeight(run.In(i), run.GradOut(i), run.GradParam(0), run.GradParamIf(1),
                              run.Scratch());
      } else if (run.GradParamIf(1) != nullptr) {
        AddChannelSums(run.device(), run.GradOut(i), 1, run.GradParamIf(1));
      }
      if (run.WantsGradIn(i)) {
        conv_->BackwardData(run.GradOut(i), run.Param(0), run.GradIn(i), run.Scratch());
      }
    }
  }

  std::string Implementation() const override { return conv_->Implementation(); }
  int64_t Macs() const override { return macs_; }

 private:
  LayerSpec spec_;
  std::unique_ptr<ConvPlan> conv_;
  int64_t macs_ = 0;
};

const RegisterLayer<Convolution> kConvolution(
    "Convolution",
    {.text =
         "Sliding weighted sums over 1, 2 or 3 spatial axes (a cross-correlation: the kernel is "
         "not turned round).\n"
         "bottom (N, C, spatial...), top (N, num_output, out...), per axis\n"
         "  out = (in + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1, rounded down.\n"
         "Parameters: weight (num_output, C / group, kernel...); bias (num_output) unless "
         "bias_term is false. Several bottoms of one shape share them.",
     .param = "convolution_param",
     .arity = {.min_in = 1, .max_in = -1, .min_out = 1, .max_out = -1}});

}  // namespace
}  // namespace trainer
