#include "trainer/backend/memory/concat.h"

#include "shared/checks.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr char kConcatParam[] = "concat_param";

// Concatenates inputs along `axis`. A single input becomes a view.
class Concat final : public Layer {
 public:
  explicit Concat(const LayerSpec& spec) : spec_(spec) {}

  void Setup(SetupContext& ctx) override {
    const Shape& first = ctx.Input(0);
    const int axis = ReadAxis(first);
    int64_t length = 0;
    desc_.lengths.clear();
    for (int i = 0; i < ctx.NumInputs(); ++i) {
      CheckInput(ctx, i, axis);
      desc_.lengths.push_back(ctx.Input(i)[axis]);
      length += desc_.lengths.back();
    }
    const Shape out = first.With(axis, length);
    const Rows rows = AxisRows(out, axis);
    for (int64_t& block : desc_.lengths) block *= rows.inner;
    desc_.element_bytes = SizeOf(ctx.InputType(0));
    desc_.blocks = rows.count / std::max<int64_t>(1, rows.inner);
    parts_.assign(desc_.lengths.size(), nullptr);
    gradients_.assign(desc_.lengths.size(), nullptr);
    if (ctx.NumInputs() == 1) return ctx.OutputView(0, 0, out);
    ctx.Output(0, out, ctx.InputType(0));
  }

  bool RecomputesAtCost() const override { return true; }
  void Forward(const RunContext& run) override {
    if (run.NumInputs() == 1) return;
    for (int i = 0; i < run.NumInputs(); ++i) {
      parts_[static_cast<size_t>(i)] = run.Input(i).As<std::byte>();
    }
    ConcatTensors(run.device(), desc_, parts_, run.Output(0).As<std::byte>());
  }

  void Backward(const RunContext& run) override {
    if (run.NumInputs() == 1) return;
    for (int i = 0; i < run.NumInputs(); ++i) {
      gradients_[static_cast<size_t>(i)] =
          run.NeedsGradInput(i) ? run.GradInput(i).As<std::byte>() : nullptr;
    }
    SplitTensors(run.device(), desc_, run.GradOutput(0).As<std::byte>(), gradients_);
  }

 private:
  // Returns the axis from `axis` or Caffe's old field concat_dim. Throws kConfig if both are given.
  int ReadAxis(const Shape& shape) const {
    const caffe::ConcatParameter& param = spec_.proto().concat_param();
    if (!param.has_concat_dim()) return AxisIn(spec_, kConcatParam, "axis", param.axis(), shape);
    if (param.has_axis()) {
      spec_.FailIn(kConcatParam, "concat_dim", "axis and concat_dim are both given; keep axis");
    }
    const auto axis = static_cast<int>(std::min<uint32_t>(param.concat_dim(), INT32_MAX));
    return AxisIn(spec_, kConcatParam, "concat_dim", axis, shape);
  }

  // Throws kConfig unless input i equals input 0 in type and in all axes but `axis`.
  void CheckInput(const SetupContext& ctx, int i, int axis) const {
    const Shape &first = ctx.Input(0), &other = ctx.Input(i);
    const bool fits = other.Rank() == first.Rank() && other.With(axis, 1) == first.With(axis, 1) &&
                      ctx.InputType(i) == ctx.InputType(0);
    if (fits) return;
    spec_.Fail(
        "bottom",
        Join("bottom '", spec_.proto().bottom(i), "' has shape ", Dims(other), ", but bottom '",
             spec_.proto().bottom(0), "' has ", Dims(first), "; to be concatenated along axis ",
             axis, " they must be equal in all other axes"),
        i);
  }

  LayerSpec spec_;
  ConcatDesc desc_;  // one block per index of the preceding axes
  std::vector<const std::byte*> parts_;
  std::vector<std::byte*> gradients_;
};

const RegisterLayer<Concat> kConcat(
    "Concat", {.text = "Concatenates its inputs along `axis` (default 1).\n"
                       "All other axes must be equal. The axis of the top is as long as those of "
                       "all bottoms together.",
               .param = kConcatParam,
               .arity = {.min_in = 1, .max_in = -1},
               .dtypes = DtypePolicy::kFollowsConsumers});

}  // namespace
}  // namespace trainer
