#include "shared/checks.h"

#include <algorithm>
#include <span>

#include "trainer/base/text/text.h"

namespace trainer {
namespace {

[[noreturn]] void FailUnequal(const SetupContext& ctx, const LayerSpec& spec, int input) {
  spec.Fail("bottom",
            Join("bottom '", spec.proto().bottom(input), "' has shape ", Dims(ctx.Input(input)),
                 ", but bottom '", spec.proto().bottom(0), "' has ", Dims(ctx.Input(0)),
                 "; they must be equal"),
            input);
}

}  // namespace

std::string Dims(const Shape& shape) {
  std::string text;
  for (const int64_t length : shape.dims()) text += Join(text.empty() ? "" : ", ", length);
  return "(" + text + ")";
}

int AxisIn(const LayerSpec& spec, std::string_view param, std::string_view field, int axis,
           const Shape& shape) {
  const int canonical = shape.CanonicalAxis(axis);
  if (canonical < 0) {
    spec.FailIn(param, field,
                Join(field, " is ", axis, ", but the input ", Dims(shape), " has ", shape.Rank(),
                     shape.Rank() == 1 ? " axis" : " axes"));
  }
  return canonical;
}

void RequireF32(const SetupContext& ctx, const LayerSpec& spec) {
  for (int i = 0; i < ctx.NumInputs(); ++i) {
    if (ctx.InputType(i) == DType::kF32) continue;
    spec.Fail("bottom",
              Join("bottom '", spec.proto().bottom(i), "' is stored as ", NameOf(ctx.InputType(i)),
                   ", but this layer needs f32"),
              i);
  }
}

void RequireRank(const SetupContext& ctx, const LayerSpec& spec, int input, int min, int max,
                 std::string_view wish) {
  const Shape& shape = ctx.Input(input);
  if (shape.Rank() >= min && shape.Rank() <= max) return;
  spec.Fail("bottom",
            Join("bottom '", spec.proto().bottom(input), "' has shape ", Dims(shape),
                 ", but this layer needs ", wish),
            input);
}

void RequireEqualShapes(const SetupContext& ctx, const LayerSpec& spec) {
  for (int i = 1; i < ctx.NumInputs(); ++i) {
    if (ctx.Input(i) != ctx.Input(0)) FailUnequal(ctx, spec, i);
  }
}

void RequireEqualItems(const SetupContext& ctx, const LayerSpec& spec) {
  const auto without_ones = [](const Shape& shape) {
    std::span<const int64_t> dims = shape.dims();
    while (!dims.empty() && dims.back() == 1) dims = dims.first(dims.size() - 1);
    return dims;
  };
  const std::span<const int64_t> first = without_ones(ctx.Input(0));
  for (int i = 1; i < ctx.NumInputs(); ++i) {
    if (ctx.Input(i) == ctx.Input(0)) continue;
    // With more axes, an image and another tensor have their numbers in different orders.
    const bool fits = first.size() <= 2 && std::ranges::equal(without_ones(ctx.Input(i)), first);
    if (!fits) FailUnequal(ctx, spec, i);
  }
}

}  // namespace trainer
