#include "shared/broadcast_operand.h"

#include "shared/checks.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Returns `axis` counted from the front of `large`. For a second input that is a scalar (`second`),
// Caffe ignores `axis`, and so does this: it returns 0.
int ReadAxis(const LayerSpec& spec, std::string_view param, int axis, const Shape& large,
             const Shape* second) {
  if (second != nullptr && second->Rank() == 0) return 0;
  return AxisIn(spec, param, "axis", axis, large);
}

// Returns the shape of the learned array: num_axes axes of `large` from `axis` on, or all of them
// for -1. Throws kConfig if `large` has fewer.
Shape LearnedShape(const LayerSpec& spec, std::string_view param, int axis, int num_axes,
                   const Shape& large) {
  if (num_axes < -1 || num_axes > large.Rank() - axis) {
    spec.FailIn(param, "num_axes",
                Join("num_axes is ", num_axes, "; from axis ", axis, " on, the input ", Dims(large),
                     " has ", large.Rank() - axis, " (or -1: all of them)"));
  }
  const int count = num_axes == -1 ? large.Rank() - axis : num_axes;
  return Shape(large.dims().subspan(static_cast<size_t>(axis), static_cast<size_t>(count)));
}

// Throws kConfig unless `small` equals the axes of `large` from `axis` on.
void RequireFit(const LayerSpec& spec, const Shape& large, const Shape& small, int axis) {
  bool fits = axis + small.Rank() <= large.Rank();
  for (int i = 0; fits && i < small.Rank(); ++i) fits = small[i] == large[axis + i];
  if (fits) return;
  spec.Fail("bottom",
            Join("bottom '", spec.proto().bottom(1), "' has shape ", Dims(small),
                 ", which does not match the axes from ", axis, " of bottom '",
                 spec.proto().bottom(0), "' ", Dims(large)),
            1);
}

}  // namespace

BroadcastOperand ReadBroadcastOperand(const SetupContext& ctx, const LayerSpec& spec,
                                      std::string_view param, int axis, int num_axes) {
  const Shape& large = ctx.Input(0);
  BroadcastOperand small;
  small.learned = ctx.NumInputs() == 1;
  small.axis = ReadAxis(spec, param, axis, large, small.learned ? nullptr : &ctx.Input(1));
  if (small.learned) {
    small.shape = LearnedShape(spec, param, small.axis, num_axes, large);
  } else {
    small.shape = ctx.Input(1);
    RequireFit(spec, large, small.shape, small.axis);
  }
  if (!MakeBroadcast(large, small.shape, small.axis, !small.learned, &small.broadcast)) {
    spec.FailIn(param, "axis", "the covered axes are too far apart in memory; reshape the input");
  }
  return small;
}

}  // namespace trainer
