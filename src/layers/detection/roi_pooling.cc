#include <cfloat>

#include "shared/regions.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr char kRoiPoolingParam[] = "roi_pooling_param";

// Divides regions into rows x columns cells. The scaled corners are rounded to whole pixels.
struct RoundedCells {
  const float* regions;
  LabelRule rule;
  float scale;
  int64_t height, width, rows, columns;

  HD int64_t Rows() const { return rows; }
  HD int64_t Columns() const { return columns; }
  // Returns the image of a region; a negative code if its number is invalid.
  HD int64_t Image(int64_t region) const { return rule.Read(regions[region * kRegionNumbers]); }

  // Returns the pixels of one cell of a region.
  HD RegionCell operator()(int64_t region, int64_t row, int64_t column) const {
    const float* const r = regions + region * kRegionNumbers;
    RegionCell cell;
    FindPixels(r[1], r[3], column, columns, width, &cell.left, &cell.right);
    FindPixels(r[2], r[4], row, rows, height, &cell.top, &cell.bottom);
    return cell;
  }

 private:
  // Sets [*begin, *end) to part `i` of `parts` of the pixels from `first` to `last`, both included,
  // limited to an image of length `size`.
  HD void FindPixels(float first, float last, int64_t i, int64_t parts, int64_t size,
                     int64_t* begin, int64_t* end) const {
    const float start = BoundedCoordinate(roundf(first * scale));
    const float stop = BoundedCoordinate(roundf(last * scale));
    const float length = fmaxf(stop - start + 1, 1.0f) / static_cast<float>(parts);
    *begin = PixelWithin(floorf(static_cast<float>(i) * length) + start, size);
    *end = PixelWithin(ceilf(static_cast<float>(i + 1) * length) + start, size);
  }
};

// Computes one cell per row: the greatest value of each channel, and its index h * W + w (-1:
// none). An empty cell is 0, and a bad image number gives NaN.
struct PoolCell {
  RoundedCells cells;
  const float* x;
  float* y;
  int32_t* place;  // null if not needed

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t channels = row.length, column = row.index % cells.columns;
    const int64_t region = row.index / cells.columns / cells.rows;
    const int64_t image = cells.Image(region);
    const RegionCell cell = cells(region, row.index / cells.columns % cells.rows, column);
    float* const to = y + row.index * channels;
    int32_t* const winner = place == nullptr ? nullptr : place + row.index * channels;
    const float start = image < 0 ? NAN : cell.Empty() ? 0.0f : -FLT_MAX;
    row.ForEach([&](int64_t c) {
      to[c] = start;
      if (winner != nullptr) winner[c] = -1;
    });
    if (image < 0) return;
    for (int64_t h = cell.top; h < cell.bottom; ++h) {
      for (int64_t w = cell.left; w < cell.right; ++w) {
        const int64_t at = h * cells.width + w;
        const float* const from = x + (image * cells.height * cells.width + at) * channels;
        row.ForEach([&](int64_t c) {
          if (!(from[c] > to[c])) return;
          to[c] = from[c];
          if (winner != nullptr) winner[c] = static_cast<int32_t>(at);
        });
      }
    }
  }
};

// Adds the gradient of each cell to its greatest value, for the channels [begin, end) or for one
// pixel per row. Cells may share pixels: a channel's cells are added in order.
struct AddToWinners {
  RoundedCells cells;
  const float* dy;
  const int32_t* place;
  float* dx;
  int64_t regions, channels;

  HD void operator()(int64_t begin, int64_t end) const {
    const int64_t per_region = cells.rows * cells.columns;
    for (int64_t i = 0; i < regions * per_region; ++i) {
      const int64_t image = cells.Image(i / per_region);
      if (image < 0) continue;
      float* const to = dx + image * cells.height * cells.width * channels;
      for (int64_t c = begin; c < end; ++c) {
        const int64_t at = place[i * channels + c];
        if (at >= 0) to[at * channels + c] += dy[i * channels + c];
      }
    }
  }

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t pixels = cells.height * cells.width, at = row.index % pixels;
    float* const to = dx + row.index * channels;
    ForEachCellAt(cells, regions, row.index / pixels, at / cells.width, at % cells.width,
                  [&](int64_t i, const RegionCell&) {
                    row.ForEach([&](int64_t c) {
                      if (place[i * channels + c] == at) to[c] += dy[i * channels + c];
                    });
                  });
  }
};

// RoI max pooling, as in Fast R-CNN (arXiv:1504.08083).
class RoiPooling final : public Layer {
 public:
  explicit RoiPooling(const LayerSpec& spec) : spec_(spec) {}

  void Setup(SetupContext& ctx) override {
    const caffe::ROIPoolingParameter& param = spec_.proto().roi_pooling_param();
    PlanRegions(ctx, spec_);
    cells_.rows = ReadSize("pooled_h", param.pooled_h());
    cells_.columns = ReadSize("pooled_w", param.pooled_w());
    cells_.scale = ReadSpatialScale(spec_, kRoiPoolingParam, param.spatial_scale());
    const Shape& in = ctx.Input(0);
    cells_.rule.classes = in[0];
    cells_.height = in[2];
    cells_.width = in[3];
    const Shape out = {ctx.Input(1)[0], in[1], cells_.rows, cells_.columns};
    ctx.Output(0, out);
    ctx.SaveInput(1);
    if (ctx.training()) ctx.Workspace(static_cast<size_t>(out.Count()) * sizeof(int32_t));
  }

  void Forward(const RunContext& run) override {
    ReportBadRegions(run, cells_.rule);
    const Shape& out = run.Output(0).shape;
    MapRows(run.device(), out[0] * out[2] * out[3], out[1],
            PoolCell{CellsOf(run), run.Input(0).f32(), run.Output(0).f32(), Places(run)});
  }

  void ThrowInputError(const RunContext&, int64_t at, float number) const override {
    ThrowBadRegion(spec_, cells_.rule, at, number);
  }

  void Backward(const RunContext& run) override {
    const Tensor& dx = run.GradInput(0);
    const Shape& out = run.GradOutput(0).shape;
    run.device().Zero(dx.data, dx.Bytes());
    const AddToWinners add = {CellsOf(run), run.GradOutput(0).f32(), Places(run), dx.f32(), out[0],
                              out[1]};
    ScatterOrGather(run.device(), out[1], out[0] * out[2] * out[3], add,
                    dx.shape[0] * dx.shape[2] * dx.shape[3], out[1], add);
  }

 private:
  // Returns the value of a field. Throws kConfig if it is 0 or beyond 31 bits.
  int64_t ReadSize(const char* field, uint32_t value) const {
    if (value >= 1 && value <= INT32_MAX) return value;
    spec_.FailIn(kRoiPoolingParam, field,
                 Join(field, " is ", value, "; it must be at least 1 and below 2^31, e.g. 7"));
  }
  // Returns the cells of the regions of this pass.
  RoundedCells CellsOf(const RunContext& run) const {
    RoundedCells cells = cells_;
    cells.regions = run.Input(1).f32();
    return cells;
  }
  // Returns the workspace: the index of each cell's greatest value. Empty in a net without
  // backward.
  static int32_t* Places(const RunContext& run) {
    return reinterpret_cast<int32_t*>(run.Workspace().data());
  }

  LayerSpec spec_;
  RoundedCells cells_ = {};
};

const RegisterLayer<RoiPooling> kRoiPooling(
    "ROIPooling",
    {.text =
         "Divides each region of an image into pooled_h x pooled_w cells and takes the largest "
         "value of each cell (Fast R-CNN).\n"
         "bottom 0 (N, C, H, W); bottom 1 (R, 5): a row (image, x1, y1, x2, y2) per region, "
         "without a gradient; top (R, C, pooled_h, pooled_w). The corners times spatial_scale are "
         "rounded to pixels; both pixels belong to the region, and it has at least one pixel. "
         "Cell i of n along a side of length L reaches from floor(i * L / n) to ceil((i + 1) * L "
         "/ n), so cells may share pixels; pixels outside the image are cut off. An empty cell is "
         "0.\n"
         "On the CPU, regions are checked in every pass; on a GPU, a bad image number gives NaN.",
     .param = kRoiPoolingParam,
     .arity = {.min_in = 2, .max_in = 2}});

}  // namespace
}  // namespace trainer
