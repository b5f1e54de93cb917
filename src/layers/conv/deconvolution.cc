#include "conv/conv_layer.h"
#include "shared/broadcast.h"

namespace trainer {
namespace {

// The transpose of a convolution. It uses the ConvPrimitive of the convolution from the top to the
// bottom: Forward is that convolution's data gradient, and Backward its forward pass. The primitive
// knows no bias for this direction, so Forward adds it in a pass of its own.
class Deconvolution final : public ConvLayer {
 public:
  explicit Deconvolution(const LayerSpec& spec) : ConvLayer(spec) {}

  void Setup(SetupContext& ctx) override {
    const caffe::ConvolutionParameter& param = spec_.proto().convolution_param();
    RequirePairs(ctx);
    ConvGeometry geometry = ReadConvGeometry(spec_, ctx.Input(0), ctx.InputType(0));
    ConvDesc& desc = geometry.desc;
    desc.out_channels = desc.in_channels;
    desc.in_channels = ReadNumOutput(spec_);
    desc.bias = false;
    RequireGroup(spec_, desc.group, desc.in_channels, "outputs (num_output)");
    for (size_t i = 0; i < desc.in.size(); ++i) desc.in[i] = OutLength(desc, i);

    ctx.Param("weight", geometry.WeightShape(), param.weight_filler());
    if (param.bias_term()) ctx.Param("bias", {desc.in_channels}, param.bias_filler());
    SetupPairs(ctx, geometry, /*transposed=*/true);
    MakeBroadcast(geometry.LayerShape(desc.InShape()), {desc.in_channels}, axis_,
                  /*is_value=*/false, &channels_);
  }

  bool RecomputesAtCost() const override { return true; }
  void Forward(const RunContext& run) override {
    for (int i = 0; i < run.NumInputs(); ++i) {
      const Tensor y = run.Output(i);
      conv_->BackwardData(run.Input(i), run.Param(0), y, run.Scratch());
      if (run.ParamOrNull(1) != nullptr) {
        ScaleShift(run.device(), channels_, y, nullptr, run.Param(1), y);
      }
    }
  }

  void Backward(const RunContext& run) override {
    for (int i = 0; i < run.NumInputs(); ++i) {
      if (HasNoGradient(run, i)) continue;
      const ConstTensor dy = run.GradOutput(i);
      if (run.GradParam(0) != nullptr) {
        conv_->BackwardWeight(dy, run.Input(i), run.GradParam(0), nullptr, run.Scratch());
      }
      if (run.GradParamOrNull(1) != nullptr) {
        run.device().AddChannelSums(ChannelSumsDesc::Of(dy.shape, axis_), dy, nullptr,
                                    run.GradParamOrNull(1));
      }
      if (run.NeedsGradInput(i)) {
        conv_->Forward(dy, run.Param(0), nullptr, run.GradInput(i), run.Scratch());
      }
    }
  }

 private:
  // Returns stride * (in - 1) + dilation * (kernel - 1) + 1 - 2 * pad for spatial axis i. Throws
  // kConfig if it is below 1 or overflows.
  int64_t OutLength(const ConvDesc& desc, size_t i) const {
    const int64_t reach = desc.dilation[i] * (desc.kernel[i] - 1) + 1;
    int64_t full = 0;
    const bool fits = !__builtin_mul_overflow(desc.stride[i], desc.in[i] - 1, &full) &&
                      !__builtin_add_overflow(full, reach, &full);
    const int64_t out = fits ? full - 2 * desc.pad[i] : 0;
    if (out >= 1) return out;
    spec_.Fail(Join("spatial axis ", i, " of the output would have the length ", full, " - 2 * ",
                    desc.pad[i], " of padding, less than 1; use less pad or a larger kernel"));
  }

  Broadcast channels_;  // where the bias repeats in a top
};

const RegisterLayer<Deconvolution> kDeconvolution(
    "Deconvolution",
    {.text =
         "The transpose of a convolution: each number adds a weighted kernel to the output.\n"
         "bottom (N, C, spatial...), top (N, num_output, out...), per axis\n"
         "  out = stride * (in - 1) + dilation * (kernel - 1) + 1 - 2 * pad.\n"
         "Parameters: weight (C, num_output / group, kernel...); bias (num_output) unless "
         "bias_term is false. Several bottoms of the same shape share these parameters. `axis` as "
         "for a Convolution.\n"
         "To enlarge images f times by bilinear interpolation: kernel_size 2 * f - f % 2, stride "
         "f, pad ceil((f - 1) / 2), num_output = group = C, weight_filler of type bilinear, "
         "bias_term false, lr_mult 0.",
     .param = "convolution_param",
     .arity = {.min_in = 1, .max_in = -1, .min_out = 1, .max_out = -1},
     .dtypes = DtypePolicy::kConfigurable});

}  // namespace
}  // namespace trainer
