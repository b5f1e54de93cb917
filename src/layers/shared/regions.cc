#include "shared/regions.h"

#include "shared/checks.h"
#include "trainer/base/text/text.h"

namespace trainer {

void PlanRegions(SetupContext& ctx, const LayerSpec& spec) {
  RequireF32(ctx, spec);
  RequireRank(ctx, spec, 0, 4, 4, "images (N, C, H, W)");
  const Shape& regions = ctx.Input(1);
  const bool rows = regions.Rank() == 2 || regions.Rank() == 4;
  if (!rows || regions[1] != kRegionNumbers || regions.Count(1) != kRegionNumbers) {
    spec.Fail("bottom",
              Join("bottom '", spec.proto().bottom(1), "' has shape ", Dims(regions),
                   "; it must be (R, 5): a row (image, x1, y1, x2, y2) per region"),
              1);
  }
  ctx.NotDifferentiable(1);
}

float ReadSpatialScale(const LayerSpec& spec, const char* param, float value) {
  if (value > 0 && std::isfinite(value)) return value;
  spec.FailIn(
      param, "spatial_scale",
      Join("spatial_scale is ", value, "; it must be above 0: pixels of the input per unit ",
           "of the regions, e.g. 0.0625"));
}

namespace {

// Reports number i of the regions: an image index outside the batch, or a coordinate that is not
// finite.
struct BadRegion {
  const float* number;
  LabelRule rule;
  InputErrorFlag fault;
  HD void operator()(int64_t i) const {
    const float it = number[i];
    const bool good = i % kRegionNumbers == 0 ? rule.Read(it) >= 0 : it - it == 0;
    if (!good) fault.Report(i, it);
  }
};

}  // namespace

void ReportBadRegions(const RunContext& run, const LabelRule& rule) {
  ForEach(run.device(), run.Input(1).Count(),
          BadRegion{run.Input(1).f32(), rule, run.input_error()});
}

void ThrowBadRegion(const LayerSpec& spec, const LabelRule& rule, int64_t at, float number) {
  static constexpr const char* kNames[kRegionNumbers] = {"image", "x1", "y1", "x2", "y2"};
  const int64_t field = at % kRegionNumbers;
  const std::string wish =
      field == 0 ? Join("it must be a whole number, and the batch has ", rule.classes,
                        rule.classes == 1 ? " image, 0" : Join(" images, 0 to ", rule.classes - 1))
                 : "a coordinate must be a finite number";
  spec.FailWith(ErrorCode::kData,
                Join("bottom '", spec.proto().bottom(1), "' has ", number, " as the ",
                     kNames[field], " of region ", at / kRegionNumbers, "; ", wish));
}

}  // namespace trainer
