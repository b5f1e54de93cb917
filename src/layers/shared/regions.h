#pragma once
// Regions of images, the input of ROIPooling and PSROIPooling: one row (image, x1, y1, x2, y2)
// each.

#include <cmath>

#include "shared/class_labels.h"
#include "trainer/backend/loops/scatter_or_gather.h"
#include "trainer/layers/layer.h"

namespace trainer {

inline constexpr int64_t kRegionNumbers = 5;

// The pixels of a cell of a region: rows [top, bottom), columns [left, right).
struct RegionCell {
  int64_t top, bottom, left, right;

  HD bool HasRow(int64_t h) const { return h >= top && h < bottom; }
  HD bool HasColumn(int64_t w) const { return w >= left && w < right; }
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

// Calls f(cell, its pixels) for each cell that contains a pixel of an image, in order: cell (row,
// column) of a region is number (region * rows + row) * columns + column. Cells is RoundedCells or
// ScaledCells. Neighbouring cells may share pixels, but no cell starts or ends before the previous
// one does.
template <class Cells, class F>
HD void ForEachCellAt(const Cells& cells, int64_t regions, int64_t image, int64_t h, int64_t w,
                      const F& f) {
  const int64_t rows = cells.Rows(), columns = cells.Columns();
  for (int64_t region = 0; region < regions; ++region) {
    if (cells.Image(region) != image) continue;
    const RegionCell first = cells(region, 0, 0), last = cells(region, rows - 1, columns - 1);
    if (h < first.top || h >= last.bottom || w < first.left || w >= last.right) continue;
    for (int64_t row = 0; row < rows; ++row) {
      if (!cells(region, row, 0).HasRow(h)) continue;
      for (int64_t column = 0; column < columns; ++column) {
        const RegionCell cell = cells(region, row, column);
        if (cell.HasColumn(w)) f((region * rows + row) * columns + column, cell);
      }
    }
  }
}

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
