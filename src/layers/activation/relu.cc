#include "shared/dropout_mask.h"

namespace trainer {
namespace {

// y = max(0, x); NaN stays NaN. ReluForward with slope 0 would turn -infinity into NaN.
struct Rectify {
  HD float operator()(float x) const { return x > 0 ? x : (x != x ? x : 0.0f); }
};

// y = x for x > 0, else slope * x.
struct ReluForward {
  float slope;
  HD float operator()(float x) const { return x > 0 ? x : slope * x; }
};

// dx = dy for v > 0, else slope * dy. `v` is the input, or the output, which has the same sign
// unless the slope is negative. With slope 0, an infinite dy must not become NaN.
struct ReluBackward {
  float slope;
  HD float operator()(float dy, float v) const {
    return v > 0 ? dy : slope != 0 ? slope * dy : 0.0f;
  }
};

// The gradient of a ReLU with a fused Dropout, whose factor is `scale`: y is 0 both where the
// Dropout dropped x and where the ReLU cut it off.
struct DroppedBackward {
  float scale;
  HD float operator()(float dy, float y) const { return y > 0 ? scale * dy : 0.0f; }
};

// y = max(0, x) + negative_slope * min(0, x). Backward needs only the output, so the layer works in
// place, unless the slope is negative.
class Relu final : public Layer {
 public:
  explicit Relu(const LayerSpec& spec) : slope_(spec.proto().relu_param().negative_slope()) {}

  void Setup(SetupContext& ctx) override {
    ctx.Output(0, ctx.Input(0), ctx.InputType(0));
    if (slope_ < 0) return ctx.SaveInput(0);
    ctx.SaveOutput(0);
    ctx.AllowInPlace();
  }
  // Accepts one Dropout after a ReLU of slope 0: Forward then applies its mask, too.
  bool Fuse(std::span<const LayerSpec* const> next, const Device&) override {
    const bool drops = !next.empty();
    if (drops && (slope_ != 0 || next.size() > 1 || next[0]->type() != "Dropout")) return false;
    if (drops) dropout_ = next[0]->proto().dropout_param();
    drops_ = drops;
    return true;
  }
  void Forward(const RunContext& run) override {
    if (drops_) {
      const DropoutMask mask(dropout_, run.Epilogue(0));
      return ApplyDropout(run.device(), mask, Rectify{}, run.Input(0), run.Output(0));
    }
    if (slope_ == 0) return Map(run.device(), Rectify{}, run.Output(0), run.Input(0));
    Map(run.device(), ReluForward{slope_}, run.Output(0), run.Input(0));
  }
  void Backward(const RunContext& run) override {
    if (drops_) {
      const DropoutMask mask(dropout_, run.Epilogue(0));
      return Map(run.device(), DroppedBackward{mask.scale}, run.GradInput(0), run.GradOutput(0),
                 ConstTensor(run.Output(0)));
    }
    const ConstTensor v = slope_ < 0 ? run.Input(0) : ConstTensor(run.Output(0));
    Map(run.device(), ReluBackward{slope_}, run.GradInput(0), run.GradOutput(0), v);
  }

 private:
  float slope_;
  bool drops_ = false;  // whether the following Dropout is fused into it
  caffe::DropoutParameter dropout_;
};

const RegisterLayer<Relu> kRelu(
    "ReLU", {.text = "y = x if x > 0, else negative_slope * x. Any shape; may work in place.\n"
                     "negative_slope (default 0) may be any number; with a negative one, the "
                     "layer does not work in place.",
             .param = "relu_param",
             .dtypes = DtypePolicy::kConfigurable});

}  // namespace
}  // namespace trainer
