#include "conv/conv_layer.h"
#include "conv/pool_window.h"
#include "shared/plain_relu.h"
#include "trainer/backend/loops/map.h"

namespace trainer {
namespace {

constexpr char kConvolutionParam[] = "convolution_param";

// dx = dy where y > 0, else 0: the gradient of a ReLU, computed from its output y.
struct WherePositive {
  HD float operator()(float dy, float y) const { return y > 0 ? dy : 0.0f; }
};

// Returns the layer with group and num_output set to the input's channels; the type stays. Throws
// kConfig if the file gives other values. A depthwise convolution is this Convolution.
LayerSpec WithChannelGroups(LayerSpec spec, const Shape& input) {
  caffe::ConvolutionParameter& param = *spec.mutable_proto().mutable_convolution_param();
  const int64_t channels = input[AxisIn(spec, kConvolutionParam, "axis", param.axis(), input)];
  const auto require = [&](const char* field, bool given, uint32_t value) {
    if (!given || value == channels) return;
    spec.FailIn(
        kConvolutionParam, field,
        Join(field, " is ", value,
             ", but a depthwise convolution has one filter per input channel, and ", Dims(input),
             " has ", channels, ": remove ", field, ", or use type Convolution"));
  };
  require("num_output", param.has_num_output(), param.num_output());
  require("group", param.has_group(), param.group());
  if (channels < 1 || channels > INT32_MAX) spec.Fail("bottom", "the input has no channels", 0);
  param.set_num_output(static_cast<uint32_t>(channels));
  param.set_group(static_cast<uint32_t>(channels));
  return spec;
}

// y = W * x + b, a cross-correlation over any number of spatial axes, by one ConvPrimitive of the
// device. The depthwise types of Caffe's forks are this layer, too. A ReLU that follows can be
// fused into it, and a max pool, before or after the ReLU: the output of the convolution is then
// in scratch memory, and the weight gradient is computed from the pool's winners.
class Convolution final : public ConvLayer {
 public:
  explicit Convolution(const LayerSpec& spec) : ConvLayer(spec), written_(spec) {}

  void Setup(SetupContext& ctx) override {
    if (written_.type() != "Convolution") spec_ = WithChannelGroups(written_, ctx.Input(0));
    const caffe::ConvolutionParameter& param = spec_.proto().convolution_param();
    RequirePairs(ctx);
    ConvGeometry geometry = ReadConvGeometry(spec_, ctx.Input(0), ctx.InputType(0));
    ConvDesc& desc = geometry.desc;
    desc.out_channels = ReadNumOutput(spec_);
    desc.bias = param.bias_term();
    desc.relu = relu_ && !pool_spec_;
    RequireGroup(spec_, desc.group, desc.out_channels, "outputs (num_output)");
    RequireFit(spec_, desc);

    ctx.Param("weight", geometry.WeightShape(), param.weight_filler());
    if (desc.bias) ctx.Param("bias", {desc.out_channels}, param.bias_filler());
    SetupPairs(ctx, geometry, /*transposed=*/false);
    if (desc.relu) ctx.SaveOutput(0);
    if (!pool_spec_) return;
    conv_shape_ = desc_.OutShape();
    pool_desc_ = ReadFusedPool(*pool_spec_, relu_);
    pool_desc_.training = ctx.training();
    ctx.Output(0, pool_desc_.OutShape(), ctx.InputType(0));
  }

  // Accepts one ReLU of slope 0 and one max pool, each if the device has a kernel for it. With a
  // pool it is the pool that computes the ReLU, which gives the same numbers before and after it.
  bool Fuse(std::span<const LayerSpec* const> next, const Device& device) override {
    bool relu = false;
    const LayerSpec* pool = nullptr;
    for (const LayerSpec* layer : next) {
      if (IsPlainRelu(*layer) && !relu) {
        relu = true;
      } else if (IsMaxPool(*layer) && pool == nullptr && !merges()) {
        pool = layer;
      } else {
        return false;
      }
    }
    ConvDesc fused = desc_;
    fused.relu = relu && pool == nullptr;
    if (fused.relu && !device.Supports(fused)) return false;
    if (pool != nullptr && !device.NewPooledConvGradient(fused, ReadFusedPool(*pool, relu))) {
      return false;
    }
    relu_ = relu;
    pool_spec_.reset();
    if (pool != nullptr) pool_spec_ = *pool;
    return true;
  }

  void Prepare(PrepareContext& ctx) override {
    ConvLayer::Prepare(ctx);
    if (!pool_spec_) return;
    pool_ = ctx.device().NewPool(pool_desc_);
    if (pool_desc_.training) {
      pooled_gradient_ = ctx.device().NewPooledConvGradient(desc_, pool_desc_);
    }
    ctx.Workspace(pool_->WorkspaceBytes());
    // The scratch memory of the primitives comes first: other layers use it, too, so it is cached.
    ScratchLayout layout;
    layout.AddBytes(conv_->ScratchBytes());
    conv_output_ = layout.Add<float>(conv_shape_.Count());
    ctx.Scratch(layout.Bytes());
    if (pooled_gradient_ != nullptr) ctx.Scratch(pooled_gradient_->ScratchBytes());
  }
  std::string kernel() const override {
    if (pooled_gradient_ == nullptr) return ConvLayer::kernel();
    return Join(ConvLayer::kernel(), ", weight gradient ", pooled_gradient_->kernel());
  }

  bool RecomputesAtCost() const override { return true; }
  void Forward(const RunContext& run) override {
    if (pool_spec_) {
      const Tensor y = ConvOutput(run);
      conv_->Forward(run.Input(0), run.Param(0), run.ParamOrNull(1), y, run.Scratch());
      return pool_->Forward(y, run.Output(0), run.Workspace());
    }
    for (int i = 0; i < run.NumInputs(); ++i) {
      conv_->Forward(run.Input(i), run.Param(0), run.ParamOrNull(1), run.Output(i), run.Scratch());
    }
  }

  void Backward(const RunContext& run) override {
    if (pool_spec_) return BackwardFromPool(run);
    for (int i = 0; i < run.NumInputs(); ++i) {
      if (HasNoGradient(run, i)) continue;
      float* const dbias = relu_ && ApplyReluGradient(run, i) ? nullptr : run.GradParamOrNull(1);
      BackwardConv(run, i, run.GradOutput(i), dbias);
    }
  }

 private:
  // Returns the description of a max pool of the convolution's output, and of a ReLU.
  PoolDesc ReadFusedPool(const LayerSpec& pool, bool relu) const {
    PoolDesc desc = ReadPoolWindows(pool, desc_.OutShape(), desc_.dtype);
    desc.relu = relu;
    return desc;
  }
  // Returns the output of the convolution before a fused pool, in scratch memory.
  Tensor ConvOutput(const RunContext& run) const {
    return {conv_output_.At(run.Scratch()), conv_shape_, desc_.dtype};
  }

  // Computes all gradients from the gradient of a fused pool's output. If the input needs one, too,
  // the gradient of the convolution's output is computed first.
  void BackwardFromPool(const RunContext& run) {
    if (HasNoGradient(run, 0)) return;
    float* const dweight = run.GradParam(0);
    if (pooled_gradient_ != nullptr && dweight != nullptr && !run.NeedsGradInput(0)) {
      return pooled_gradient_->Run(run.Input(0), run.GradOutput(0), run.Workspace(), dweight,
                                   run.GradParamOrNull(1), run.Scratch());
    }
    const Tensor dy = ConvOutput(run);
    pool_->Backward(run.GradOutput(0), dy, run.Workspace());
    BackwardConv(run, 0, dy, run.GradParamOrNull(1));
  }

  // Computes the gradients that the convolution of bottom i has to compute, from the gradient of
  // its output. `dbias` is null for none.
  void BackwardConv(const RunContext& run, int i, const ConstTensor& dy, float* dbias) const {
    const std::span<std::byte> scratch = run.Scratch();
    if (run.GradParam(0) != nullptr) {
      conv_->BackwardWeight(run.Input(i), dy, run.GradParam(0), dbias, scratch);
    } else if (dbias != nullptr) {
      run.device().AddChannelSums(ChannelSumsDesc::Of(dy.shape, axis_), dy, nullptr, dbias);
    }
    if (run.NeedsGradInput(i)) conv_->BackwardData(dy, run.Param(0), run.GradInput(i), scratch);
  }

  // Applies the fused ReLU's gradient to the gradient of top i, in place. Returns true if the
  // device added the bias's gradient in the same pass over memory; otherwise the caller must.
  bool ApplyReluGradient(const RunContext& run, int i) const {
    const ConstTensor dy = run.GradOutput(i), y = run.Output(i);
    const Tensor g = run.MutableGradOutput(i);
    if (run.GradParamOrNull(1) != nullptr &&
        run.device().ReluGradAndBiasGrad(ChannelSumsDesc::Of(y.shape, axis_), dy, y, g,
                                         run.GradParamOrNull(1))) {
      return true;
    }
    Map(run.device(), WherePositive{}, g, dy, y);
    return false;
  }

  LayerSpec written_;                   // differs from spec_ for a depthwise convolution
  bool relu_ = false;                   // whether the following ReLU is fused into it
  std::optional<LayerSpec> pool_spec_;  // the max pool that is fused into it
  Shape conv_shape_;                    // of the convolution's output
  PoolDesc pool_desc_;
  std::unique_ptr<PoolPrimitive> pool_;
  std::unique_ptr<PooledConvGradient> pooled_gradient_;
  ScratchRegion<float> conv_output_;
};

const RegisterLayer<Convolution> kConvolution(
    "Convolution",
    {.text =
         "Sliding weighted sums over the spatial axes (a cross-correlation: the kernel is not "
         "rotated).\n"
         "y[o, p] = b[o] + sum over c and k of w[o, c, k] * x[c, stride * p - pad + dilation * "
         "k], where p and k are positions in the output and in the kernel, and x is 0 outside.\n"
         "bottom (N, C, spatial...), top (N, num_output, out...), per axis\n"
         "  out = (in + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1, rounded down.\n"
         "Parameters: weight (num_output, C / group, kernel...); bias (num_output) unless "
         "bias_term is false. Several bottoms of the same shape share these parameters. If the "
         "channels are not on axis 1, set `axis`; the axes before it count as one batch. More "
         "than 3 spatial axes are slow.",
     .param = kConvolutionParam,
     .arity = {.min_in = 1, .max_in = -1, .min_out = 1, .max_out = -1},
     .dtypes = DtypePolicy::kConfigurable});

constexpr LayerDoc kDepthwiseDoc = {
    .text =
        "A Convolution with one filter per input channel; this is its name in forks for "
        "MobileNet.\n"
        "bottom (N, C, spatial...), top (N, C, out...): the same as a Convolution with group: C "
        "and num_output: C. You may leave out both. Parameters: weight (C, 1, kernel...); bias "
        "(C) unless bias_term is false. ConvolutionDepthwise and DepthwiseConvolution are the "
        "same.",
    .param = kConvolutionParam,
    .arity = {.min_in = 1, .max_in = -1, .min_out = 1, .max_out = -1},
    .dtypes = DtypePolicy::kConfigurable};
const RegisterLayer<Convolution> kConvolutionDepthwise("ConvolutionDepthwise", kDepthwiseDoc);
const RegisterLayer<Convolution> kDepthwiseConvolution("DepthwiseConvolution", kDepthwiseDoc);

}  // namespace
}  // namespace trainer
