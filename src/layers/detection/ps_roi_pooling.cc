#include "shared/regions.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr char kPsRoiPoolingParam[] = "psroi_pooling_param";
constexpr float kMinLength = 0.1f;  // least length of a region's side, in pixels

// Divides regions into side x side cells. The corners are rounded before they are scaled, unlike in
// ROIPooling.
struct ScaledCells {
  const float* regions;
  LabelRule rule;
  float scale;
  int64_t height, width, side;

  HD int64_t Rows() const { return side; }
  HD int64_t Columns() const { return side; }
  // Returns the image of a region; a negative code if its number is invalid.
  HD int64_t Image(int64_t region) const { return rule.Read(regions[region * kRegionNumbers]); }

  // Returns the pixels of one cell of a region.
  HD RegionCell operator()(int64_t region, int64_t row, int64_t column) const {
    const float* const r = regions + region * kRegionNumbers;
    RegionCell cell;
    FindPixels(r[1], r[3], column, width, &cell.left, &cell.right);
    FindPixels(r[2], r[4], row, height, &cell.top, &cell.bottom);
    return cell;
  }

 private:
  // Sets [*begin, *end) to the pixels of cell i along one axis of length `size`, for a region from
  // `first` to `last`.
  HD void FindPixels(float first, float last, int64_t i, int64_t size, int64_t* begin,
                     int64_t* end) const {
    const float start = BoundedCoordinate(roundf(first) * scale);
    const float stop = BoundedCoordinate((roundf(last) + 1) * scale);
    const float length = fmaxf(stop - start, kMinLength) / static_cast<float>(side);
    *begin = PixelWithin(floorf(static_cast<float>(i) * length + start), size);
    *end = PixelWithin(ceilf(static_cast<float>(i + 1) * length + start), size);
  }
};

// Computes one cell per row: for each output channel, the mean over the cell of the input channel
// that belongs to it. An empty cell is 0, and a bad image number gives NaN.
struct MeanOfCell {
  ScaledCells cells;
  const float* x;
  float* y;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t per_output = cells.side * cells.side, part = row.index % per_output;
    const int64_t region = row.index / per_output, channels = row.length * per_output;
    const int64_t image = cells.Image(region);
    const RegionCell cell = cells(region, part / cells.side, part % cells.side);
    float* const to = y + row.index * row.length;
    row.ForEach([&](int64_t c) { to[c] = image < 0 ? NAN : 0.0f; });
    if (image < 0 || cell.Empty()) return;
    for (int64_t h = cell.top; h < cell.bottom; ++h) {
      for (int64_t w = cell.left; w < cell.right; ++w) {
        const float* const from =
            x + ((image * cells.height + h) * cells.width + w) * channels + part;
        row.ForEach([&](int64_t c) { to[c] += from[c * per_output]; });
      }
    }
    const float area = cell.Area();
    row.ForEach([&](int64_t c) { to[c] /= area; });
  }
};

// Adds dy * (1 / area) of each cell to the gradients of its pixels, for the output channels [begin,
// end) or for one pixel per row. Cells may share pixels: a channel's cells are added in order.
struct AddToPixels {
  ScaledCells cells;
  const float* dy;
  float* dx;
  int64_t regions, outputs;

  HD void operator()(int64_t begin, int64_t end) const {
    const int64_t per_output = cells.side * cells.side, channels = outputs * per_output;
    for (int64_t i = 0; i < regions * per_output; ++i) {
      const int64_t region = i / per_output, part = i % per_output, image = cells.Image(region);
      const RegionCell cell = cells(region, part / cells.side, part % cells.side);
      if (image < 0 || cell.Empty()) continue;
      const float share = 1 / cell.Area();
      for (int64_t h = cell.top; h < cell.bottom; ++h) {
        for (int64_t w = cell.left; w < cell.right; ++w) {
          float* const to = dx + ((image * cells.height + h) * cells.width + w) * channels + part;
          for (int64_t c = begin; c < end; ++c) to[c * per_output] += dy[i * outputs + c] * share;
        }
      }
    }
  }

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t pixels = cells.height * cells.width, at = row.index % pixels;
    const int64_t per_output = cells.side * cells.side;
    ForEachCellAt(
        cells, regions, row.index / pixels, at / cells.width, at % cells.width,
        [&](int64_t i, const RegionCell& cell) {
          const float share = 1 / cell.Area();
          float* const to = dx + row.index * outputs * per_output + i % per_output;
          row.ForEach([&](int64_t c) { to[c * per_output] += dy[i * outputs + c] * share; });
        });
  }
};

// Position-sensitive RoI pooling, as in R-FCN (arXiv:1605.06409): each cell of a region averages
// its own group of channels.
class PsRoiPooling final : public Layer {
 public:
  explicit PsRoiPooling(const LayerSpec& spec) : spec_(spec) {}

  void Setup(SetupContext& ctx) override {
    const caffe::PSROIPoolingParameter& param = spec_.proto().psroi_pooling_param();
    PlanRegions(ctx, spec_);
    if (!param.has_spatial_scale()) {
      spec_.Fail(
          "spatial_scale is not given; it is the pixels of the input per unit of the regions, e.g. "
          "0.0625");
    }
    cells_.scale = ReadSpatialScale(spec_, kPsRoiPoolingParam, param.spatial_scale());
    const int64_t outputs = ReadSize("output_dim", param.has_output_dim(), param.output_dim(),
                                     "the number of output channels");
    cells_.side = ReadSize("group_size", param.has_group_size(), param.group_size(),
                           "the number of cells per side, e.g. 7");
    const Shape& in = ctx.Input(0);
    const int64_t wanted = CheckedChannels(outputs);
    if (in[1] != wanted) {
      spec_.FailIn(kPsRoiPoolingParam, "output_dim",
                   Join("bottom '", spec_.proto().bottom(0), "' has ", in[1], " channels, but ",
                        "output_dim * group_size^2 is ", wanted));
    }
    cells_.rule.classes = in[0];
    cells_.height = in[2];
    cells_.width = in[3];
    ctx.Output(0, {ctx.Input(1)[0], outputs, cells_.side, cells_.side});
    ctx.SaveInput(1);
  }

  void Forward(const RunContext& run) override {
    ReportBadRegions(run, cells_.rule);
    const Shape& out = run.Output(0).shape;
    MapRows(run.device(), out[0] * out[2] * out[3], out[1],
            MeanOfCell{CellsOf(run), run.Input(0).f32(), run.Output(0).f32()});
  }

  void ThrowInputError(const RunContext&, int64_t at, float number) const override {
    ThrowBadRegion(spec_, cells_.rule, at, number);
  }

  void Backward(const RunContext& run) override {
    const Tensor& dx = run.GradInput(0);
    const Shape& out = run.GradOutput(0).shape;
    run.device().Zero(dx.data, dx.Bytes());
    const AddToPixels add = {CellsOf(run), run.GradOutput(0).f32(), dx.f32(), out[0], out[1]};
    ScatterOrGather(run.device(), out[1], out[0] * out[2] * out[3], add,
                    dx.shape[0] * dx.shape[2] * dx.shape[3], out[1], add);
  }

 private:
  // Returns the value of a required field. Throws kConfig if it is missing or below 1.
  int64_t ReadSize(const char* field, bool given, int32_t value, const char* meaning) const {
    if (!given) spec_.Fail(Join(field, " is not given; it is ", meaning));
    if (value >= 1) return value;
    spec_.FailIn(kPsRoiPoolingParam, field, Join(field, " is ", value, "; it must be at least 1"));
  }
  // Returns output_dim * group_size^2, which fits in 64 bits for any side up to 65536.
  int64_t CheckedChannels(int64_t outputs) const {
    if (cells_.side <= 65536) return outputs * cells_.side * cells_.side;
    spec_.FailIn(
        kPsRoiPoolingParam, "group_size",
        Join("group_size is ", cells_.side, "; at most 65536 cells per side are ", "allowed"));
  }
  // Returns the cells of the regions of this pass.
  ScaledCells CellsOf(const RunContext& run) const {
    ScaledCells cells = cells_;
    cells.regions = run.Input(1).f32();
    return cells;
  }

  LayerSpec spec_;
  ScaledCells cells_ = {};
};

const RegisterLayer<PsRoiPooling> kPsRoiPooling(
    "PSROIPooling",
    {.text =
         "Divides each region of an image into group_size x group_size cells and averages each "
         "cell over its own channels (R-FCN).\n"
         "bottom 0 (N, output_dim * group_size^2, H, W); bottom 1 (R, 5): a row (image, x1, y1, "
         "x2, y2) per region, without a gradient; top (R, output_dim, group_size, group_size). "
         "Output channel c of cell (i, j) reads input channel (c * group_size + i) * group_size + "
         "j. A region reaches from round(x1) * spatial_scale to (round(x2) + 1) * spatial_scale, "
         "at least 0.1. Cell i reaches from floor(start + i * size) to ceil(start + (i + 1) * "
         "size). Pixels outside the image are cut off. An empty cell is 0.\n"
         "On the CPU, regions are checked in every pass; on a GPU, a bad image number gives NaN.",
     .param = kPsRoiPoolingParam,
     .arity = {.min_in = 2, .max_in = 2}});

}  // namespace
}  // namespace trainer
