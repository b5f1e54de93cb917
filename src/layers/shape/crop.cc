#include "shared/checks.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr char kCropParam[] = "crop_param";

// Cuts input 0 to the lengths of input 1 in the axes from `axis` on, beginning at `offset`. A view
// if nothing is cut off.
class Crop final : public Layer {
 public:
  explicit Crop(const LayerSpec& spec) : spec_(spec) {}

  void Setup(SetupContext& ctx) override {
    const Shape &in = ctx.Input(0), &like = ctx.Input(1);
    const int first = AxisIn(spec_, kCropParam, "axis", spec_.proto().crop_param().axis(), in);
    if (like.Rank() != in.Rank()) {
      spec_.Fail("bottom",
                 Join("bottom '", spec_.proto().bottom(1), "' has shape ", Dims(like),
                      ", but bottom '", spec_.proto().bottom(0), "' has ", Dims(in),
                      "; they must have the same number of axes"),
                 1);
    }
    Shape out = in;
    std::vector<int64_t> offsets(static_cast<size_t>(in.Rank()), 0);
    for (int axis = first; axis < in.Rank(); ++axis) {
      const int64_t offset = ReadOffset(axis - first, in.Rank() - first);
      CheckFit(axis, offset, like[axis], in[axis]);
      offsets[static_cast<size_t>(axis)] = offset;
      out = out.With(axis, like[axis]);
    }
    PlanCopies(in, out, offsets, SizeOf(ctx.InputType(0)));
    ctx.NotDifferentiable(1);
    if (out == in) return ctx.OutputView(0, 0, out);
    ctx.Output(0, out, ctx.InputType(0));
  }

  void Forward(const RunContext& run) override {
    if (run.Input(0).shape == run.Output(0).shape) return;
    run.device().Copy(take_, run.Input(0).As<std::byte>() + start_bytes_, run.Output(0).data);
  }

  void Backward(const RunContext& run) override {
    if (!run.NeedsGradInput(0) || run.GradInput(0).shape == run.GradOutput(0).shape) return;
    run.device().Zero(run.GradInput(0).data, run.GradInput(0).Bytes());
    run.device().Copy(put_, run.GradOutput(0).data,
                      run.GradInput(0).As<std::byte>() + start_bytes_);
  }

 private:
  // Returns the offset of cropped axis `i` of `count`.
  int64_t ReadOffset(int i, int count) const {
    const auto& offsets = spec_.proto().crop_param().offset();
    if (offsets.empty()) return 0;
    if (offsets.size() == 1) return offsets[0];
    if (offsets.size() != count) {
      spec_.FailIn(kCropParam, "offset",
                   Join("offset is given ", offsets.size(), " times for ", count,
                        " cropped axes; give one, or one per axis"),
                   0);
    }
    return offsets[i];
  }

  // Throws kConfig unless `length` elements from `offset` on fit into `whole`.
  void CheckFit(int axis, int64_t offset, int64_t length, int64_t whole) const {
    if (offset + length <= whole) return;
    spec_.FailIn(kCropParam, "offset",
                 Join("on axis ", axis, ", ", length, " elements from offset ", offset,
                      " do not fit into the ", whole, " of bottom '", spec_.proto().bottom(0), "'"),
                 0);
  }

  // Sets the copies of Forward and Backward, axis by axis from the outermost in memory.
  void PlanCopies(const Shape& in, const Shape& out, const std::vector<int64_t>& offsets,
                  size_t element_bytes) {
    take_ = put_ = CopyDesc(element_bytes);
    int64_t start = 0;
    for (int k = 0; k < in.Rank(); ++k) {
      const int axis = MemoryAxis(in, k);
      int64_t in_step = 1, out_step = 1;
      for (int inner = k + 1; inner < in.Rank(); ++inner) {
        in_step *= in[MemoryAxis(in, inner)];
        out_step *= out[MemoryAxis(in, inner)];
      }
      start += offsets[static_cast<size_t>(axis)] * in_step;
      take_.Axis(out[axis], in_step, out_step);
      put_.Axis(out[axis], out_step, in_step);
    }
    start_bytes_ = static_cast<size_t>(start) * element_bytes;
  }
  // Returns the k-th axis in memory, counted from the outermost.
  static int MemoryAxis(const Shape& shape, int k) {
    constexpr int kImageOrder[] = {0, 2, 3, 1};
    return shape.IsImage() ? kImageOrder[k] : k;
  }

  LayerSpec spec_;
  // take_ copies the part, which begins at start_bytes_, out of the whole; put_ copies it back.
  CopyDesc take_, put_;
  size_t start_bytes_ = 0;
};

const RegisterLayer<Crop> kCrop(
    "Crop",
    {.text = "Cuts its first input to the size of the second.\n"
             "The axes from `axis` (default 2) get the lengths of bottom 1, starting at `offset` "
             "(none: 0; one for all axes; or one per cropped axis). The axes before do not change. "
             "Only the shape of bottom 1 is used; it gets no gradient.",
     .param = kCropParam,
     .arity = {.min_in = 2, .max_in = 2},
     .dtypes = DtypePolicy::kFollowsConsumers,
     .second_input = DtypePolicy::kAny});

}  // namespace
}  // namespace trainer
