#pragma once
// Regions of images, the input of ROIPooling and PSROIPooling: one row (image, x1, y1, x2, y2)
// each.

#include <cmath>

#include "shared/class_labels.h"
#include "trainer/backend/loops/map_ranges.h"
#include "trainer/backend/loops/map_rows.h"
#include "trainer/layers/layer.h"

namespace trainer {

inline constexpr int64_t kRegionNumbers = 5;

// The pixels of a cell of a region: rows [top, bottom), columns [left, right).
struct RegionCell {
  int64_t top, bottom, left, right;

  // Returns true if the cell has no pixel, e.g. because it is outside the image.
  HD bool Empty() const { return bottom <= top || right <= left; }
  HD float Area() const { return static_cast<float>((bottom - top) * (right - left)); }
};

// Clamps `at`, a whole number of pixels that may be far outside of an image, to [0, size].
HD int64_t PixelWithin(float at, int64_t size) {
  const float inside = fminf(fmaxf(at, 0.0f), static_cast<float>(size));
  return static_cast<int64_t>(inside);
}
// Clamps a coordinate to +-1e9, so that sums of a few of them remain finite.
HD float BoundedCoordinate(float x) { return fminf(fmaxf(x, -1e9f), 1e9f); }

// Refuses an input 1 that is not (R, 5) or (R, 5, 1, 1), and an input 0 that is not (N, C, H, W);
// declares that input 1 gets no gradient.
void PlanRegions(SetupContext& ctx, const LayerSpec& spec);

// Returns the spatial_scale of a layer's message; refuses values that are not above 0.
float ReadSpatialScale(const LayerSpec& spec, const char* param, float value);

// Reports the first number of the regions (input 1) that is not an image index below rule.classes,
// or not a finite coordinate, to run.input_error().
void ReportBadRegions(const RunContext& run, const LabelRule& rule);

// Throws kData for element `at` of the regions, which has the value `number`.
[[noreturn]] void ThrowBadRegion(const LayerSpec& spec, const LabelRule& rule, int64_t at,
                                 float number);

}  // namespace trainer
