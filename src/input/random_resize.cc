#include "trainer/input/random_resize.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "record_rng.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr char kRandomResizeTransform[] = "transform_param";
constexpr uint32_t kMaxSide = 1u << 16, kMaxAttempts = 1000;

// The longer side, in proportion.
int Longer(int longer, int shorter, int64_t side) {
  constexpr float kTooLong = 2e9f;  // Check refuses it
  const float ratio = static_cast<float>(longer) / static_cast<float>(shorter);
  return static_cast<int>(std::min(ratio * static_cast<float>(side), kTooLong));
}

// All of a picture, its shorter side resized to `side`.
RandomResize::Choice ShorterSide(int height, int width, int64_t side, Interpolation how) {
  const int same = static_cast<int>(side);
  const bool tall = height > width;
  return {{0, 0, width, height},
          tall ? Longer(height, width, side) : same,
          tall ? same : Longer(width, height, side),
          how};
}

Interpolation Read(caffe::ResizeParameter::Interp_mode mode) {
  switch (mode) {
    case caffe::ResizeParameter::NEAREST:
      return Interpolation::kNearest;
    case caffe::ResizeParameter::CUBIC:
      return Interpolation::kCubic;
    case caffe::ResizeParameter::AREA:
      return Interpolation::kArea;
    default:
      return Interpolation::kLinear;
  }
}

Interpolation DrawOne(const caffe::ResizeParameter& param, RecordRng* draws) {
  const int modes = param.interp_mode_size();
  if (modes == 0) return Interpolation::kLinear;
  return Read(param.interp_mode(modes == 1 ? 0 : static_cast<int>(draws->Below(modes))));
}

// To the nearest whole number, halves to the even one: as Python rounds.
int Rounded(double x) { return static_cast<int>(std::nearbyint(x)); }

// All of the picture but what makes it too wide or too high.
Rect MiddlePart(int height, int width, double least, double greatest) {
  const double aspect = static_cast<double>(width) / height;
  Rect box{0, 0, width, height};
  if (aspect < least) box.height = Rounded(width / least);
  if (aspect > greatest) box.width = Rounded(height * greatest);
  box.top = (height - box.height) / 2;
  box.left = (width - box.width) / 2;
  return box;
}

// Draws a part with the distribution of torchvision's RandomResizedCrop: a share of the area,
// uniform; width by height, uniform in its logarithm; ten attempts until it fits, at a uniform
// place; then the middle. Source: Szegedy and others 2014 (arXiv:1409.4842), section 6.
Rect DrawResizedCrop(int height, int width, const caffe::RandomResizedCropParameter& param,
                     RecordRng* draws) {
  constexpr int kAttempts = 10;
  const double area = static_cast<double>(height) * width;
  const double low = std::log(static_cast<double>(param.min_aspect()));
  const double high = std::log(static_cast<double>(param.max_aspect()));
  for (int i = 0; i < kAttempts; ++i) {
    const double share = draws->Within(param.min_area_ratio(), param.max_area_ratio());
    const double aspect = std::exp(draws->Within(low, high));
    const int wide = Rounded(std::sqrt(area * share * aspect));
    const int tall = Rounded(std::sqrt(area * share / aspect));
    if (wide < 1 || tall < 1 || wide > width || tall > height) continue;
    const int top = static_cast<int>(draws->Below(height - tall + 1));
    const int left = static_cast<int>(draws->Below(width - wide + 1));
    return {left, top, wide, tall};
  }
  return MiddlePart(height, width, param.min_aspect(), param.max_aspect());
}

}  // namespace

RandomResize::RandomResize(const LayerSpec& layer, caffe::Phase phase)
    : layer_(layer), param_(layer.proto().transform_param()) {
  const std::pair<Kind, bool> given[] = {{Kind::kSides, param_.has_random_resize_param()},
                                         {Kind::kParts, param_.has_random_aspect_ratio_param()},
                                         {Kind::kCrop, param_.has_random_resized_crop_param()}};
  for (const auto& [kind, is_given] : given) {
    if (!is_given) continue;
    const std::string before = active() ? Param() : "";
    kind_ = kind;
    if (before.empty()) continue;
    layer_.FailIn(kRandomResizeTransform, Param(),
                  Join(before, " and ", Param(), " are both given; keep one"));
  }
  if (!active()) return;
  if (param_.has_mean_file()) {
    layer_.FailIn(kRandomResizeTransform, "mean_file",
                  Join("a mean image has a fixed size, but with ", Param(),
                       " the images have many sizes; give mean_value instead"));
  }
  if (kind_ == Kind::kSides) CheckSides();
  if (kind_ == Kind::kParts) CheckParts();
  if (kind_ == Kind::kCrop) CheckCrop();
  if (kind_ != Kind::kCrop || phase == caffe::TRAIN) return;
  const uint32_t side = param_.random_resized_crop_param().test_size();
  test_side_ = side > 0 ? int64_t{side} : int64_t{param_.crop_size()} * 8 / 7;
}

const char* RandomResize::Param() const {
  if (kind_ == Kind::kSides) return "random_resize_param";
  return kind_ == Kind::kParts ? "random_aspect_ratio_param" : "random_resized_crop_param";
}

int64_t RandomResize::CropSide() const {
  return std::max({param_.crop_size(), param_.crop_h(), param_.crop_w()});
}

void RandomResize::Refuse(const std::string& what) const {
  layer_.FailIn(kRandomResizeTransform, Param(), what);
}

void RandomResize::CheckWords(const caffe::ResizeParameter& param) const {
  constexpr char kWhy[] = " is not supported; use LINEAR, CUBIC, AREA or NEAREST, and WARP";
  if (param.resize_mode() != caffe::ResizeParameter::WARP) {
    Refuse(
        Join("resize_mode ", caffe::ResizeParameter::Resize_mode_Name(param.resize_mode()), kWhy));
  }
  for (const int mode : param.interp_mode()) {
    if (mode == caffe::ResizeParameter::LANCZOS4) Refuse(Join("interp_mode LANCZOS4", kWhy));
  }
}

void RandomResize::CheckSides() const {
  const caffe::RandomResizeParameter& param = param_.random_resize_param();
  CheckWords(param.resize_param());
  const int64_t crop = CropSide(), least = param.min_size(), greatest = param.max_size();
  if (crop == 0)
    Refuse(
        "random_resize_param needs a crop_size, because all images of a batch must have the same "
        "shape");
  if (least > kMaxSide || greatest > kMaxSide) {
    Refuse(Join("sizes from ", least, " to ", greatest, " are requested; the limit is ", kMaxSide,
                " pixels"));
  }
  if (least > 0 && greatest > 0 && least > greatest) {
    Refuse(
        Join("min_size is ", least, " and max_size ", greatest, "; min_size must not be larger"));
  }
  for (const int64_t size : {least, greatest}) {
    if (size == 0 || size >= crop) continue;
    Refuse(Join("a shorter side of ", size, " is requested, but the crop has ", crop,
                "; the size must not be smaller"));
  }
}

void RandomResize::CheckCropSide() const {
  if (param_.crop_size() == 0 || param_.crop_h() > 0) {
    Refuse(Join(Param(), " needs crop_size, the side of the resized parts"));
  }
  if (param_.crop_size() > kMaxSide) {
    Refuse(Join("crop_size is ", param_.crop_size(), "; the limit is ", kMaxSide, " pixels"));
  }
}

void RandomResize::CheckAreas(float least, float greatest) const {
  if (least > 0 && least <= greatest && greatest <= 1) return;
  Refuse(Join("min_area_ratio is ", least, " and max_area_ratio ", greatest,
              "; both must be above 0 and at most 1, and the first must not be larger"));
}

void RandomResize::CheckParts() const {
  const caffe::RandomAspectRatioParameter& param = param_.random_aspect_ratio_param();
  CheckWords(param.resize_param());
  CheckCropSide();
  CheckAreas(param.min_area_ratio(), param.max_area_ratio());
  const float change = param.aspect_ratio_change();
  if (!(change >= 0.01f && change <= 1)) {
    Refuse(Join("aspect_ratio_change is ", change, "; it must be within 0.01 and 1, e.g. 0.75"));
  }
  if (param.max_attempt() > kMaxAttempts) {
    Refuse(Join("max_attempt is ", param.max_attempt(), "; it must be at most ", kMaxAttempts));
  }
}

void RandomResize::CheckCrop() const {
  constexpr float kLeast = 0.01f, kGreatest = 100;
  const caffe::RandomResizedCropParameter& param = param_.random_resized_crop_param();
  CheckCropSide();
  CheckAreas(param.min_area_ratio(), param.max_area_ratio());
  const float least = param.min_aspect(), greatest = param.max_aspect();
  if (!(least >= kLeast && least <= greatest && greatest <= kGreatest)) {
    Refuse(Join("min_aspect is ", least, " and max_aspect ", greatest,
                "; both are width divided by height, from ", kLeast, " to ", kGreatest,
                ", and the first must not be larger"));
  }
  const uint32_t side = param.test_size();
  if (side > 0 && (side < param_.crop_size() || side > kMaxSide)) {
    Refuse(Join("test_size is ", side, "; it must be at least crop_size, ", param_.crop_size(),
                ", and at most ", kMaxSide));
  }
}

void RandomResize::Check(const DatumView& datum, const std::string& record) const {
  const int64_t shorter = std::min(datum.height, datum.width);
  const int64_t longer = std::max(datum.height, datum.width);
  const auto refuse = [&](const std::string& what) {
    layer_.FailIn(kRandomResizeTransform, Param(),
                  Join("record ", record, " is ", datum.ShapeText(), "; ", what));
  };
  int64_t greatest = std::max(test_side_, int64_t{param_.crop_size()});
  if (kind_ == Kind::kSides) {
    const int64_t min = param_.random_resize_param().min_size();
    const int64_t max = param_.random_resize_param().max_size();
    const int64_t least = min > 0 ? min : shorter;
    greatest = max > 0 ? max : longer;
    if (least < CropSide()) {
      refuse(Join("its shorter side is smaller than the crop of ", CropSide(), ": give min_size"));
    }
    if (least > greatest) {
      refuse(Join("sizes from ", least, " to ", greatest,
                  " are impossible: min_size 0 means the shorter side of the image, max_size 0 the "
                  "longer side"));
    }
  }
  if (static_cast<double>(longer) / static_cast<double>(shorter) * static_cast<double>(greatest) *
          static_cast<double>(greatest) >
      static_cast<double>(kMaxPixels)) {
    refuse(Join("with a shorter side of ", greatest, " it would have more than ", kMaxPixels,
                " pixels"));
  }
}

RandomResize::Choice RandomResize::Choose(int height, int width, const PhiloxKey& key,
                                          uint64_t number) const {
  constexpr uint32_t kFirstPass = 1;
  RecordRng draws(key, number, kFirstPass);
  if (kind_ == Kind::kSides) return DrawSide(height, width, &draws);
  return kind_ == Kind::kParts ? DrawPart(height, width, &draws) : DrawCrop(height, width, &draws);
}

RandomResize::Choice RandomResize::DrawSide(int height, int width, RecordRng* draws) const {
  const caffe::RandomResizeParameter& param = param_.random_resize_param();
  const int64_t least = param.min_size() > 0 ? param.min_size() : std::min(height, width);
  const int64_t greatest = param.max_size() > 0 ? param.max_size() : std::max(height, width);
  const int64_t side = least + draws->Below(std::max<int64_t>(greatest - least, 0) + 1);
  return ShorterSide(height, width, side, DrawOne(param.resize_param(), draws));
}

RandomResize::Choice RandomResize::DrawPart(int height, int width, RecordRng* draws) const {
  const caffe::RandomAspectRatioParameter& param = param_.random_aspect_ratio_param();
  const double change = param.aspect_ratio_change();
  const int crop = static_cast<int>(param_.crop_size());
  for (uint32_t i = 0; i < param.max_attempt(); ++i) {
    const double share = draws->Within(param.min_area_ratio(), param.max_area_ratio());
    const double factor = draws->Within(change, 1 / change);
    const double side = std::sqrt(share * static_cast<double>(int64_t{height} * width));
    int tall = static_cast<int>(side * factor), wide = static_cast<int>(side / factor);
    if (draws->Word() >> 31 != 0) std::swap(tall, wide);
    if (tall < 1 || wide < 1 || tall > height || wide > width) continue;
    const int top = static_cast<int>(draws->Below(height - tall + 1));
    const int left = static_cast<int>(draws->Below(width - wide + 1));
    return {{left, top, wide, tall}, crop, crop, DrawOne(param.resize_param(), draws)};
  }
  return ShorterSide(height, width, crop, DrawOne(param.resize_param(), draws));
}

RandomResize::Choice RandomResize::DrawCrop(int height, int width, RecordRng* draws) const {
  if (test_side_ > 0) {
    const auto scaled = [&](int side) {
      return static_cast<int>(test_side_ * side / std::min(height, width));
    };
    return {{0, 0, width, height}, scaled(height), scaled(width), Interpolation::kSmooth};
  }
  const int crop = static_cast<int>(param_.crop_size());
  return {DrawResizedCrop(height, width, param_.random_resized_crop_param(), draws), crop, crop,
          Interpolation::kSmooth};
}

void RandomResize::Apply(const DatumView& datum, const Choice& choice, Image* to) {
  const DatumView::Part held = datum.Held();
  ImageView image{datum.channels, held.height, held.width,
                  reinterpret_cast<const uint8_t*>(datum.bytes.data())};
  if (datum.bytes.empty()) image.floats = datum.floats.data();
  const Rect& box = choice.box;
  const double scale_denom = held.scale_denom;
  const RectF region{box.left / scale_denom - held.left, box.top / scale_denom - held.top,
                     box.width / scale_denom, box.height / scale_denom};
  ResizeRegion(image, region, choice.height, choice.width, to, choice.how);
}

}  // namespace trainer
