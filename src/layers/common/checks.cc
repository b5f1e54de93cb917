#include "common/checks.h"

#include "trainer/base/text/text.h"

namespace trainer {

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

void RequireF32(const DescribeContext& plan, const LayerSpec& spec) {
  for (int i = 0; i < plan.NumIn(); ++i) {
    if (plan.InType(i) == DType::kF32) continue;
    spec.Fail("bottom",
              Join("bottom '", spec.proto().bottom(i), "' is stored as ", NameOf(plan.InType(i)),
                   ", but this layer needs f32"),
              i);
  }
}

void RequireRank(const DescribeContext& plan, const LayerSpec& spec, int input, int min, int max,
                 std::string_view wish) {
  const Shape& shape = plan.In(input);
  if (shape.Rank() >= min && shape.Rank() <= max) return;
  spec.Fail("bottom",
            Join("bottom '", spec.proto().bottom(input), "' has shape ", Dims(shape),
                 ", but this layer needs ", wish),
            input);
}

void RequireEqualShapes(const DescribeContext& plan, const LayerSpec& spec) {
  for (int i = 1; i < plan.NumIn(); ++i) {
    if (plan.In(i) == plan.In(0)) continue;
    spec.Fail(
        "bottom",
        Join("bottom '", spec.proto().bottom(i), "' has shape ", Dims(plan.In(i)), ", but bottom '",
             spec.proto().bottom(0), "' has ", Dims(plan.In(0)), "; they must be equal"),
        i);
  }
}

}  // namespace trainer
