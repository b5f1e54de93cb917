#include "shared/checks.h"
#include "trainer/backend/memory/concat.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr char kSliceParam[] = "slice_param";

// Cuts the input along `axis` into one part per output. In Backward, a part without a gradient
// counts as zeros. A single output is a view.
class Slice final : public Layer {
 public:
  explicit Slice(const LayerSpec& spec) : spec_(spec) {}

  void Setup(SetupContext& ctx) override {
    const Shape& in = ctx.Input(0);
    const int axis = ReadAxis(in);
    rows_ = AxisRows(in, axis);
    starts_ = ReadStarts(ctx.NumOutputs());
    desc_ = {SizeOf(ctx.InputType(0)), rows_.count / std::max<int64_t>(1, rows_.inner), {}};
    parts_.assign(static_cast<size_t>(ctx.NumOutputs()), nullptr);
    gradients_.assign(static_cast<size_t>(ctx.NumOutputs()), nullptr);
    for (int i = 0; i < ctx.NumOutputs(); ++i) {
      const Shape out = in.With(axis, PartLength(i));
      desc_.lengths.push_back(PartLength(i) * rows_.inner);
      if (ctx.NumOutputs() == 1) return ctx.OutputView(0, 0, out);
      ctx.Output(i, out, ctx.InputType(0));
    }
  }

  void Forward(const RunContext& run) override {
    if (run.NumOutputs() == 1) return;
    for (int i = 0; i < run.NumOutputs(); ++i) {
      parts_[static_cast<size_t>(i)] = run.Output(i).As<std::byte>();
    }
    SplitTensors(run.device(), desc_, run.Input(0).As<std::byte>(), parts_);
  }

  // Zeroes the input's gradient first if some part has none.
  void Backward(const RunContext& run) override {
    if (run.NumOutputs() == 1) return;
    const Device& device = run.device();
    bool all = true;
    for (int i = 0; i < run.NumOutputs(); ++i) all = all && run.HasGradOutput(i);
    if (!all) device.Zero(run.GradInput(0).data, run.GradInput(0).Bytes());
    for (int i = 0; i < run.NumOutputs(); ++i) {
      gradients_[static_cast<size_t>(i)] =
          run.HasGradOutput(i) ? run.GradOutput(i).As<std::byte>() : nullptr;
    }
    ConcatTensors(device, desc_, gradients_, run.GradInput(0).As<std::byte>());
  }

 private:
  // Returns the axis from `axis` or Caffe's old field slice_dim. Throws kConfig if both are given.
  int ReadAxis(const Shape& shape) const {
    const caffe::SliceParameter& param = spec_.proto().slice_param();
    if (!param.has_slice_dim()) return AxisIn(spec_, kSliceParam, "axis", param.axis(), shape);
    if (param.has_axis()) {
      spec_.FailIn(kSliceParam, "slice_dim", "axis and slice_dim are both given; keep axis");
    }
    const auto axis = static_cast<int>(std::min<uint32_t>(param.slice_dim(), INT32_MAX));
    return AxisIn(spec_, kSliceParam, "slice_dim", axis, shape);
  }

  // Returns the start of each part, and the end of the last one: from slice_point, or equal parts.
  // Throws kConfig for cuts that do not increase or leave a part empty.
  std::vector<int64_t> ReadStarts(int parts) const {
    const auto& points = spec_.proto().slice_param().slice_point();
    std::vector<int64_t> starts = {0};
    if (points.empty()) {
      if (rows_.length % parts != 0) {
        spec_.Fail(Join(rows_.length, " elements do not divide into ", parts,
                        " equal parts; give the positions of the cuts in slice_point"));
      }
      for (int i = 1; i <= parts; ++i) starts.push_back(rows_.length / parts * i);
      return starts;
    }
    if (points.size() != parts - 1) {
      spec_.FailIn(
          kSliceParam, "slice_point",
          Join("slice_point is given ", points.size(), " times; ", parts, " tops need ", parts - 1),
          0);
    }
    for (int i = 0; i < points.size(); ++i) {
      const int64_t point = points[i];
      if (point <= starts.back() || point >= rows_.length) {
        spec_.FailIn(kSliceParam, "slice_point",
                     Join("slice_point ", point, " is not between ", starts.back(), " and ",
                          rows_.length, ": the cuts must increase, and no part may be empty"),
                     i);
      }
      starts.push_back(point);
    }
    starts.push_back(rows_.length);
    return starts;
  }

  // Returns the length of part i along the axis.
  int64_t PartLength(int i) const {
    return starts_[static_cast<size_t>(i) + 1] - starts_[static_cast<size_t>(i)];
  }
  LayerSpec spec_;
  Rows rows_;
  std::vector<int64_t> starts_;
  ConcatDesc desc_;  // one block per index of the preceding axes
  std::vector<std::byte*> parts_;
  std::vector<const std::byte*> gradients_;
};

const RegisterLayer<Slice> kSlice(
    "Slice", {.text = "Cuts its input along `axis` (default 1) into one part per top.\n"
                      "slice_point gives the indices of the cuts in increasing order, one fewer "
                      "than tops; without it, all parts are equal.",
              .param = kSliceParam,
              .arity = {.min_in = 1, .max_in = 1, .min_out = 1, .max_out = -1},
              .dtypes = DtypePolicy::kFollowsConsumers});

}  // namespace
}  // namespace trainer
