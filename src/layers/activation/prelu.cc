#include <cstdint>

#include "shared/checks.h"
#include "trainer/backend/loops/grouped_sums.h"
#include "trainer/backend/loops/map_channels.h"

namespace trainer {
namespace {

// Maps the index of an element in memory to its channel: i / inner % channels. A slope that all
// channels share counts as one channel.
struct Channels {
  int64_t channels, inner;
  bool is_small = false;  // indices have 31 bits: dividing these takes less time

  HD int64_t Of(int64_t i) const {
    if (!is_small) return i / inner % channels;
    const auto at = static_cast<uint32_t>(i), step = static_cast<uint32_t>(inner);
    return at / step % static_cast<uint32_t>(channels);
  }
};

// y = x for x > 0, else slope * x; number(0) is the slope of the element's channel.
struct PReluForward {
  template <class Number>
  HD float operator()(const Number& number, float x) const {
    return x > 0 ? x : number(0) * x;
  }
};

// dx = dy for x > 0, else slope * dy.
struct PReluBackward {
  template <class Number>
  HD float operator()(const Number& number, float dy, float x) const {
    return x > 0 ? dy : number(0) * dy;
  }
};

// Lets MapIndexed call these.
template <class F>
struct AtIndex {
  F f;
  const float* slope;
  Channels channels;
  template <class... Floats>
  HD float operator()(int64_t i, Floats... x) const {
    return f([&](int) { return slope[channels.Of(i)]; }, x...);
  }
};

// Returns an element's term of the gradient of its slope, dy * min(x, 0).
template <class T>
struct SlopeTerm {
  const T *x, *dy;

  template <class Place>
  HD float operator()(const Place& place) const {
    const int64_t at = place.At();
    const float v = Load(x[at]);
    return v < 0 ? Load(dy[at]) * v : 0.0f;
  }
};

// A ReLU with a learned slope per channel, or one for all with channel_shared, initially 0.25.
// Source: He et al., "Delving deep into rectifiers", arXiv:1502.01852.
class PRelu final : public Layer {
 public:
  explicit PRelu(const LayerSpec& spec) : spec_(spec) {}

  void Setup(SetupContext& ctx) override {
    const caffe::PReLUParameter& param = spec_.proto().prelu_param();
    RequireRank(ctx, spec_, 0, 2, Shape::kMaxAxes, "(N, C, ...)");
    const Shape& in = ctx.Input(0);
    const Rows rows = AxisRows(in, 1);
    channels_ = param.channel_shared() ? Channels{1, in.Count()} : Channels{in[1], rows.inner};
    channels_.is_small = in.Count() <= INT32_MAX;
    caffe::FillerParameter filler = param.filler();
    if (!param.has_filler()) filler.set_value(0.25f);
    ctx.Param("slope", param.channel_shared() ? Shape{} : Shape{in[1]}, filler);
    ctx.Output(0, in, ctx.InputType(0));
    ctx.SaveInput(0);
  }
  void Forward(const RunContext& run) override {
    Apply(run, PReluForward{}, run.Output(0), run.Input(0));
  }
  bool Recomputes() const override { return true; }
  void Backward(const RunContext& run) override {
    if (run.GradParam(0) != nullptr) {
      DispatchDtype(run.Input(0).dtype, [&](auto tag) {
        using T = typename decltype(tag)::Type;
        const int64_t share = channels_.channels * channels_.inner;
        const int64_t outer = run.Input(0).Count() / std::max<int64_t>(1, share);
        AddSums(run.device(), {outer, channels_.channels, channels_.inner},
                SlopeTerm<T>{run.Input(0).As<T>(), run.GradOutput(0).As<T>()}, run.GradParam(0));
      });
    }
    if (!run.NeedsGradInput(0)) return;
    Apply(run, PReluBackward{}, run.GradInput(0), run.GradOutput(0), run.Input(0));
  }

 private:
  template <class F, class... Ins>
  void Apply(const RunContext& run, F f, const Tensor& out, const Ins&... ins) const {
    const Device& device = run.device();
    const float* const slope = run.Param(0);
    const int64_t length[] = {channels_.inner, channels_.channels}, stride[] = {0, 1};
    if (MapRepeated(device, f, length, stride, {slope}, out, ins...)) return;
    MapIndexed(device, AtIndex<F>{f, slope, channels_}, out, ins...);
  }

  LayerSpec spec_;
  Channels channels_{1, 1};
};

const RegisterLayer<PRelu> kPRelu(
    "PReLU", {.text = "y = x if x > 0, else slope * x, with a trained slope per channel.\n"
                      "bottom (N, C, ...). Parameter: slope (C), or one number with "
                      "channel_shared; initially 0.25.",
              .param = "prelu_param",
              .dtypes = DtypePolicy::kConfigurable});

}  // namespace
}  // namespace trainer
