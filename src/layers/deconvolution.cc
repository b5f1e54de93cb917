#include "common/checks.h"
#include "common/conv_geometry.h"
#include "common/merged_axes.h"
#include "trainer/backend/map.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

struct AddBias {
  const float* bias;
  int64_t channels, inner;
  HD float operator()(int64_t i, float y) const { return y + bias[i / inner % channels]; }
};

// The convolution from the top to the bottom, run backward: its data gradient is the output.
class Deconvolution final : public Layer {
 public:
  explicit Deconvolution(const LayerSpec& spec) : spec_(spec) {}

  void Describe(DescribeContext& plan) override {
    const caffe::ConvolutionParameter& param = spec_.proto().convolution_param();
    if (plan.NumIn() != plan.NumOut()) {
      spec_.Fail(Join("has ", plan.NumIn(), " bottoms and ", plan.NumOut(),
                      " tops; give one top per bottom"));
    }
    RequireEqualShapes(plan, spec_);
    ConvGeometry geometry = ReadConvGeometry(spec_, plan.In(0), plan.InType(0));
    ConvDesc& desc = geometry.desc;
    desc.out_channels = desc.in_channels;
    desc.in_channels = ReadNumOutput(spec_);
    desc.bias = false;
    RequireGroup(spec_, desc.group, desc.in_channels, "outputs (num_output)");
    for (size_t i = 0; i < desc.in.size(); ++i) desc.in[i] = OutLength(desc, i);

    plan.Param("weight", geometry.WeightShape(), param.weight_filler());
    if (param.bias_term()) plan.Param("bias", {desc.in_channels}, param.bias_filler());
    const Shape out = geometry.LayerShape(desc.InShape());
    x_ = MergedAxes(plan.In(0), desc.OutShape(), desc.dtype);
    y_ = MergedAxes(out, desc.InShape(), desc.dtype);
    for (int i = 0; i < plan.NumIn(); ++i) {
      plan.Out(i, out, plan.InType(i));
      plan.KeepInput(i);
    }
    macs_ = desc.Macs() * plan.NumIn();
    desc_ = desc;
  }

  void Prepare(PrepareContext& plan) override {
    conv_ = plan.device().MakeConv(desc_);
    plan.Scratch(x_.Bytes() + y_.Bytes() + conv_->ScratchBytes());
  }

  void Forward(const RunContext& run) override {
    const Parts part = Cut(run);
    for (int i = 0; i < run.NumIn(); ++i) {
      const Tensor y = y_.Place(run.Out(i), part.y);
      conv_->BackwardData(x_.Read(run.device(), run.In(i), part.x), run.Param(0), y, part.rest);
      if (run.ParamIf(1) != nullptr) {
        const Rows rows = AxisRows(y.shape, 1);
        MapIndexed(run.device(), AddBias{run.Param(1), rows.length, rows.inner}, y, y);
      }
      y_.Write(run.device(), run.Out(i), part.y);
    }
  }

  void Backward(const RunContext& run) override {
    const Device& device = run.device();
    const Parts part = Cut(run);
    for (int i = 0; i < run.NumIn(); ++i) {
      if (!run.HasGradOut(i)) {
        if (run.WantsGradIn(i)) run.device().Zero(run.GradIn(i).data, run.GradIn(i).Bytes());
        continue;
      }
      const ConstTensor dy = y_.Read(device, run.GradOut(i), part.y);
      if (run.GradParam(0) != nullptr) {
        conv_->BackwardWeight(dy, x_.Read(device, run.In(i), part.x), run.GradParam(0), nullptr,
                              part.rest);
      }
      if (run.GradParamIf(1) != nullptr)
        device.AddChannelSums(ChannelSumsDesc::Of(dy.shape, 1), dy, nullptr, run.GradParamIf(1));
      if (!run.WantsGradIn(i)) continue;
      conv_->Forward(dy, run.Param(0), nullptr, x_.Place(run.GradIn(i), part.x), part.rest);
      x_.Write(device, run.GradIn(i), part.x);
    }
  }

  std::string Implementation() const override { return conv_->Implementation(); }
  std::vector<std::string> Declined() const override { return conv_->Declined(); }
  int64_t Macs() const override { return macs_; }

 private:
  // Scratch: x and y where they are copied, then the convolution's own.
  struct Parts {
    std::byte *x, *y;
    std::span<std::byte> rest;
  };
  Parts Cut(const RunContext& run) const {
    const std::span<std::byte> scratch = run.Scratch();
    return {scratch.data(), scratch.data() + x_.Bytes(), scratch.subspan(x_.Bytes() + y_.Bytes())};
  }
  int64_t OutLength(const ConvDesc& desc, size_t i) const {
    const int64_t reach = desc.dilation[i] * (desc.kernel[i] - 1) + 1;
    int64_t full = 0;
    const bool fits = !__builtin_mul_overflow(desc.stride[i], desc.in[i] - 1, &full) &&
                      !__builtin_add_overflow(full, reach, &full);
    const int64_t out = fits ? full - 2 * desc.pad[i] : 0;
    if (out >= 1) return out;
    spec_.Fail(Join("spatial axis ", i, " of the output gets the length ", full, " - 2 * ",
                    desc.pad[i], " of padding, less than 1; take less pad or a larger kernel"));
  }

  LayerSpec spec_;
  MergedAxes x_, y_;
  ConvDesc desc_;
  std::unique_ptr<ConvPlan> conv_;
  int64_t macs_ = 0;
};

const RegisterLayer<Deconvolution> kDeconvolution(
    "Deconvolution",
    {.text =
         "A convolution turned round: each number adds a weighted kernel to the output.\n"
         "bottom (N, C, spatial...), top (N, num_output, out...), per axis\n"
         "  out = stride * (in - 1) + dilation * (kernel - 1) + 1 - 2 * pad.\n"
         "Parameters: weight (C, num_output / group, kernel...); bias (num_output) unless "
         "bias_term is false. Several bottoms of one shape share them. `axis` as for a "
         "Convolution.\n"
         "To enlarge images f times by bilinear interpolation: kernel_size 2 * f - f % 2, stride "
         "f, pad ceil((f - 1) / 2), num_output = group = C, weight_filler of type bilinear, "
         "bias_term false, lr_mult 0.",
     .param = "convolution_param",
     .arity = {.min_in = 1, .max_in = -1, .min_out = 1, .max_out = -1},
     .storage = Storage::kChosen});

}  // namespace
}  // namespace trainer
