#include <algorithm>
#include <cmath>

#include "shared/checks.h"
#include "trainer/backend/loops/map.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr char kPriorBoxParam[] = "prior_box_param";

// Describes the boxes, in pixels; the output is in shares of the image's sides.
struct Grid {
  // cells per row, boxes per cell, numbers per half of the output
  int64_t columns = 1, boxes = 1, half = 1;
  float offset = 0, step_h = 1, step_w = 1, image_h = 1, image_w = 1;
  float variance[4] = {};
  bool clip = false;
};

// Computes number i: a corner (xmin, ymin, xmax, ymax) in shares of the image's sides, or a
// variance.
struct PriorNumber {
  const float* size;  // width and height of each box of a cell
  float* y;
  Grid grid;

  HD void operator()(int64_t i) const {
    if (i >= grid.half) {
      y[i] = grid.variance[i % 4];
      return;
    }
    const int64_t corner = i % 4, box = i / 4 % grid.boxes, cell = i / 4 / grid.boxes;
    const bool down = corner % 2 == 1;
    const int64_t at = down ? cell / grid.columns : cell % grid.columns;
    const float center =
        (static_cast<float>(at) + grid.offset) * (down ? grid.step_h : grid.step_w);
    const float half = size[2 * box + (down ? 1 : 0)] / 2;
    const float value =
        (corner < 2 ? center - half : center + half) / (down ? grid.image_h : grid.image_w);
    y[i] = !grid.clip ? value : value < 0 ? 0.0f : value > 1 ? 1.0f : value;
  }
};

// A field of prior_box_param for a size, which is written as `field` for both axes, or as `field`_h
// and `field`_w.
template <class T>
struct Pair {
  const char *field, *field_h, *field_w;
  bool has, has_h, has_w;
  T both, h, w;
};

// Default boxes around each cell of a feature map, as in SSD (arXiv:1512.02325). Only the shapes of
// the inputs matter, and the boxes are computed again in each pass.
class PriorBox final : public Layer {
 public:
  explicit PriorBox(const LayerSpec& spec) : spec_(spec) {
    const caffe::PriorBoxParameter& param = spec.proto().prior_box_param();
    ReadBoxes(param);
    ReadVariance(param);
    const Pair<uint32_t> image = {"img_size",           "img_h",           "img_w",
                                  param.has_img_size(), param.has_img_h(), param.has_img_w(),
                                  param.img_size(),     param.img_h(),     param.img_w()};
    ReadPair(image, &grid_.image_h, &grid_.image_w);
    const Pair<float> step = {"step",           "step_h",           "step_w",
                              param.has_step(), param.has_step_h(), param.has_step_w(),
                              param.step(),     param.step_h(),     param.step_w()};
    ReadPair(step, &grid_.step_h, &grid_.step_w);
    if (!std::isfinite(param.offset())) {
      spec.FailIn(kPriorBoxParam, "offset",
                  Join("offset is ", param.offset(), "; it must be a number"));
    }
    grid_.offset = param.offset();
    grid_.clip = param.clip();
    has_image_ = grid_.image_h > 0;
    has_step_ = grid_.step_h > 0;
  }

  void Setup(SetupContext& ctx) override {
    RequireRank(ctx, spec_, 0, 4, 4, "a feature map (N, C, H, W)");
    const Shape& map = ctx.Input(0);
    if (!has_image_) {
      RequireRank(ctx, spec_, 1, 4, 4,
                  "an image (N, C, H, W) as its second bottom, or img_size in prior_box_param");
      grid_.image_h = static_cast<float>(ctx.Input(1)[2]);
      grid_.image_w = static_cast<float>(ctx.Input(1)[3]);
    }
    if (!has_step_) {
      grid_.step_h = grid_.image_h / static_cast<float>(map[2]);
      grid_.step_w = grid_.image_w / static_cast<float>(map[3]);
    }
    ctx.NotDifferentiable(0);
    ctx.NotDifferentiable(1);
    grid_.columns = map[3];
    grid_.boxes = static_cast<int64_t>(sizes_.size() / 2);
    const Shape cells{map[2], map[3], grid_.boxes, 4};  // throws if it is larger than any memory
    grid_.half = cells.Count();
    ctx.Output(0, {1, 2, grid_.half});
    ctx.OutputKeepsF32(0);
    ctx.Constants(sizes_);
  }

  void Forward(const RunContext& run) override {
    ForEach(run.device(), run.Output(0).Count(),
            PriorNumber{run.Constants(), run.Output(0).f32(), grid_});
  }

 private:
  // Sets sizes_ to the width and height of each box of a cell, in Caffe's order: per min_size the
  // square, the square for max_size, then one box per aspect ratio.
  void ReadBoxes(const caffe::PriorBoxParameter& param) {
    if (param.min_size().empty()) {
      spec_.Fail("min_size is not given; it is the side of the smallest square in pixels");
    }
    if (!param.max_size().empty() && param.max_size_size() != param.min_size_size()) {
      spec_.FailIn(kPriorBoxParam, "max_size",
                   Join("max_size is given ", param.max_size_size(), " times and min_size ",
                        param.min_size_size(), "; give one for each, or none"),
                   0);
    }
    const std::vector<float> ratios = ReadRatios(param);
    for (int i = 0; i < param.min_size_size(); ++i) {
      const float side = ReadSide("min_size", param.min_size(i), i);
      AddBox(side, 1);
      if (!param.max_size().empty()) {
        const float most = ReadSide("max_size", param.max_size(i), i);
        if (param.max_size(i) <= param.min_size(i)) {
          spec_.FailIn(kPriorBoxParam, "max_size",
                       Join("max_size ", param.max_size(i), " is not above its min_size, ",
                            param.min_size(i)),
                       i);
        }
        AddBox(std::sqrt(side * most), 1);
      }
      for (const float ratio : ratios) AddBox(side, ratio);
    }
  }

  // Cuts sizes to whole pixels, because the published nets were trained with them.
  float ReadSide(const char* field, float side, int i) const {
    if (!(side >= 1) || side > 1e9f) {
      spec_.FailIn(kPriorBoxParam, field,
                   Join(field, " is ", side, "; it must be a side in whole pixels, at least 1"), i);
    }
    return std::trunc(side);
  }

  // Adds a box of area side^2 whose width is `ratio` times its height.
  void AddBox(float side, float ratio) {
    sizes_.push_back(side * std::sqrt(ratio));
    sizes_.push_back(side / std::sqrt(ratio));
  }

  // Returns the ratios other than 1, each once; with `flip`, also the inverse of each.
  std::vector<float> ReadRatios(const caffe::PriorBoxParameter& param) const {
    std::vector<float> ratios = {1};
    for (int i = 0; i < param.aspect_ratio_size(); ++i) {
      const float ratio = param.aspect_ratio(i);
      if (!(ratio > 0) || !std::isfinite(ratio) || !std::isfinite(1 / ratio)) {
        spec_.FailIn(
            kPriorBoxParam, "aspect_ratio",
            Join("aspect_ratio is ", ratio, "; it must be width divided by height, above 0"), i);
      }
      const auto known = [&](float other) { return std::fabs(ratio - other) < 1e-6f; };
      if (std::any_of(ratios.begin(), ratios.end(), known)) continue;
      ratios.push_back(ratio);
      if (param.flip()) ratios.push_back(1 / ratio);
    }
    ratios.erase(ratios.begin());
    return ratios;
  }

  // Sets the four variances: one for all, one for each, or 0.1 if none is given.
  void ReadVariance(const caffe::PriorBoxParameter& param) {
    const int given = param.variance_size();
    if (given > 1 && given != 4) {
      spec_.FailIn(kPriorBoxParam, "variance",
                   Join("variance is given ", given, " times; give one, or four"), 0);
    }
    for (int i = 0; i < given; ++i) {
      if (param.variance(i) > 0 && std::isfinite(param.variance(i))) continue;
      spec_.FailIn(kPriorBoxParam, "variance",
                   Join("variance is ", param.variance(i), "; it must be above 0"), i);
    }
    for (int i = 0; i < 4; ++i) {
      grid_.variance[i] = given == 0 ? 0.1f : param.variance(given == 1 ? 0 : i);
    }
  }

  // Sets h and w from whichever form is written, or both to 0 if none is. Throws kConfig for both
  // forms, for half of one, and for sizes that are not above 0.
  template <class T>
  void ReadPair(const Pair<T>& pair, float* h, float* w) const {
    *h = *w = 0;
    if (pair.has_h || pair.has_w) {
      const char* given = pair.has_h ? pair.field_h : pair.field_w;
      if (pair.has) {
        spec_.FailIn(kPriorBoxParam, given,
                     Join(given, " and ", pair.field, " are both given; keep one of them"));
      }
      if (pair.has_h != pair.has_w) {
        spec_.FailIn(kPriorBoxParam, given,
                     Join(given, " is given without ", pair.has_h ? pair.field_w : pair.field_h,
                          "; give both"));
      }
      *h = RequirePositive(pair.field_h, pair.h);
      *w = RequirePositive(pair.field_w, pair.w);
    } else if (pair.has) {
      *h = *w = RequirePositive(pair.field, pair.both);
    }
  }

  // Returns a written size. Throws kConfig unless it is finite and above 0.
  template <class T>
  float RequirePositive(const char* field, T value) const {
    const auto number = static_cast<float>(value);
    if (!(number > 0) || !std::isfinite(number)) {
      spec_.FailIn(kPriorBoxParam, field, Join(field, " is ", value, "; it must be above 0"));
    }
    return number;
  }

  LayerSpec spec_;
  std::vector<float> sizes_;  // width and height in pixels of each box of a cell
  Grid grid_;
  bool has_image_ = false, has_step_ = false;
};

const RegisterLayer<PriorBox> kPriorBox(
    "PriorBox",
    {.text =
         "Default boxes around each cell of a feature map (SSD).\n"
         "bottoms: a feature map (., ., H, W) and the image; only their sizes are used. top (1, "
         "2, H * W * boxes * 4): xmin, ymin, xmax, ymax of each box, in shares of the image's "
         "sides, cell by cell; then the four variances of each. The boxes of a cell, per "
         "min_size: a square of it; with max_size one of sqrt(min_size * max_size); for each "
         "aspect_ratio r other than 1 (and 1 / r with flip) min_size * sqrt(r) x min_size / "
         "sqrt(r). Their center is ((column + offset) * step_w, (row + offset) * step_h) pixels. "
         "Sizes are whole pixels; a fraction is cut off, as in the program that trained the "
         "published nets.",
     .param = kPriorBoxParam,
     .arity = {.min_in = 2, .max_in = 2},
     .dtypes = DtypePolicy::kAny});

}  // namespace
}  // namespace trainer
