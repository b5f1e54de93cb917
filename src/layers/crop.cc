#include "checks.h"
#include "trainer/backend/map.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

constexpr char kParam[] = "crop_param";

// Where element i of the part lies in the whole, both in memory order.
struct Part {
  int rank = 0;
  int64_t start = 0;
  int64_t length[Shape::kMaxAxes] = {}, step[Shape::kMaxAxes] = {};

  HD int64_t operator()(int64_t i) const {
    int64_t at = start;
    for (int axis = rank - 1; axis >= 0; --axis) {
      at += i % length[axis] * step[axis];
      i /= length[axis];
    }
    return at;
  }
};

template <class T>
struct Take {
  const T* whole;
  T* part;
  Part where;
  HD void operator()(int64_t i) const { part[i] = whole[where(i)]; }
};

template <class T>
struct Put {
  const T* part;
  T* whole;
  Part where;
  HD void operator()(int64_t i) const { whole[where(i)] = part[i]; }
};

class Crop final : public Layer {
 public:
  explicit Crop(const LayerSpec& spec) : spec_(spec) {}

  void Plan(PlanContext& plan) override {
    const Shape &in = plan.In(0), &like = plan.In(1);
    const int first = AxisIn(spec_, kParam, "axis", spec_.proto().crop_param().axis(), in);
    if (like.Rank() != in.Rank()) {
      spec_.Fail("bottom",
                 Join("bottom '", spec_.proto().bottom(1), "' has shape ", Dims(like),
                      " and bottom '", spec_.proto().bottom(0), "' has ", Dims(in),
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
    part_ = PartOf(in, out, offsets);
    plan.NoGradient(1);
    if (out == in) return plan.OutIsView(0, 0, out);
    plan.Out(0, out, plan.InType(0));
  }

  void Forward(RunContext& run) override {
    if (run.In(0).shape == run.Out(0).shape) return;
    WithType(run.In(0).dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      ForEach(run.device(), run.Out(0).Count(),
              Take<T>{run.In(0).As<T>(), run.Out(0).As<T>(), part_});
    });
  }

  void Backward(RunContext& run) override {
    if (!run.WantsGradIn(0) || run.GradIn(0).shape == run.GradOut(0).shape) return;
    run.device().Zero(run.GradIn(0).data, run.GradIn(0).Bytes());
    WithType(run.GradIn(0).dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      ForEach(run.device(), run.GradOut(0).Count(),
              Put<T>{run.GradOut(0).As<T>(), run.GradIn(0).As<T>(), part_});
    });
  }

 private:
  // Of cropped axis `i` of `count`.
  int64_t ReadOffset(int i, int count) const {
    const auto& offsets = spec_.proto().crop_param().offset();
    if (offsets.empty()) return 0;
    if (offsets.size() == 1) return offsets[0];
    if (offsets.size() != count) {
      spec_.FailIn(kParam, "offset",
                   Join("offset is given ", offsets.size(), " times for ", count,
                        " cropped axes; give one, or one per axis"),
                   0);
    }
    return offsets[i];
  }

  void CheckFit(int axis, int64_t offset, int64_t length, int64_t whole) const {
    if (offset + length <= whole) return;
    spec_.FailIn(
        kParam, "offset",
        Join("on axis ", axis, ", ", length, " places from offset ", offset,
             " on do not fit into the ", whole, " of bottom '", spec_.proto().bottom(0), "'"),
        0);
  }

  static Part PartOf(const Shape& in, const Shape& out, const std::vector<int64_t>& offsets) {
    Part part;
    part.rank = in.Rank();
    int64_t step = 1;
    for (int k = in.Rank() - 1; k >= 0; --k) {
      constexpr int kImageOrder[] = {0, 2, 3, 1};
      const int axis = in.IsImage() ? kImageOrder[k] : k;
      part.length[k] = out[axis];
      part.step[k] = step;
      part.start += offsets[static_cast<size_t>(axis)] * step;
      step *= in[axis];
    }
    return part;
  }

  LayerSpec spec_;
  Part part_;
};

const RegisterLayer<Crop> kCrop(
    "Crop",
    {.text =
         "Cuts its first input to the size of the second.\n"
         "The axes from `axis` (default 2) on get the lengths of bottom 1, from `offset` on (none: "
         "0; one for all; or one per cropped axis); those before stay. Only the shape of bottom 1 "
         "counts, it gets no gradient.",
     .param = kParam,
     .arity = {.min_in = 2, .max_in = 2},
     .storage = Storage::kFollows,
     .second = Storage::kAny});

}  // namespace
}  // namespace trainer
