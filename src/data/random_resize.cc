#include "trainer/data/random_resize.h"

#include <algorithm>
#include <cmath>

#include "record_draws.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

constexpr char kTransform[] = "transform_param";
constexpr uint32_t kMaxSide = 1u << 16, kMaxAttempts = 1000;

ImageView PictureOf(const DatumView& datum) {
  return {datum.channels, datum.height, datum.width,
          reinterpret_cast<const uint8_t*>(datum.bytes.data())};
}

// The longer side, in proportion.
int Longer(int longer, int shorter, int64_t side) {
  const float ratio = static_cast<float>(longer) / static_cast<float>(shorter);
  return static_cast<int>(ratio * static_cast<float>(side));
}

void ResizeShorterSide(const ImageView& image, int64_t side, Interpolation how, Image* to) {
  const int same = static_cast<int>(side);
  const bool tall = image.height > image.width;
  const int height = tall ? Longer(image.height, image.width, side) : same;
  const int width = tall ? same : Longer(image.width, image.height, side);
  ResizeImage(image, {0, 0, image.width, image.height}, height, width, to, how);
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

Interpolation DrawOne(const caffe::ResizeParameter& param, RecordDraws* draws) {
  const int modes = param.interp_mode_size();
  if (modes == 0) return Interpolation::kLinear;
  return Read(param.interp_mode(modes == 1 ? 0 : static_cast<int>(draws->Below(modes))));
}

}  // namespace

RandomResize::RandomResize(const LayerSpec& layer)
    : layer_(layer),
      param_(layer.proto().transform_param()),
      sides_(param_.has_random_resize_param()),
      parts_(param_.has_random_aspect_ratio_param()) {
  if (!active()) return;
  if (sides_ && parts_) {
    layer_.FailIn(kTransform, "random_aspect_ratio_param",
                  "random_resize_param and random_aspect_ratio_param are both given; keep one");
  }
  if (param_.has_mean_file()) {
    layer_.FailIn(kTransform, "mean_file",
                  Join("a mean image has one size, but with ", Param(),
                       " the images get many; give "
                       "mean_value instead"));
  }
  sides_ ? CheckSides() : CheckParts();
}

int64_t RandomResize::CropSide() const {
  return std::max({param_.crop_size(), param_.crop_h(), param_.crop_w()});
}

void RandomResize::CheckWords(const caffe::ResizeParameter& param) const {
  const auto refuse = [&](const std::string& what) {
    layer_.FailIn(
        kTransform, Param(),
        Join(what, " is not in this build; take LINEAR, CUBIC, AREA or NEAREST, and WARP"));
  };
  if (param.resize_mode() != caffe::ResizeParameter::WARP) {
    refuse("resize_mode " + caffe::ResizeParameter::Resize_mode_Name(param.resize_mode()));
  }
  for (const int mode : param.interp_mode()) {
    if (mode == caffe::ResizeParameter::LANCZOS4) refuse("interp_mode LANCZOS4");
  }
}

void RandomResize::CheckSides() const {
  const caffe::RandomResizeParameter& param = param_.random_resize_param();
  const auto refuse = [&](const std::string& what) { layer_.FailIn(kTransform, Param(), what); };
  CheckWords(param.resize_param());
  const int64_t crop = CropSide(), least = param.min_size(), greatest = param.max_size();
  if (crop == 0) refuse("random_resize_param needs a crop_size: one batch holds one shape");
  if (least > kMaxSide || greatest > kMaxSide) {
    refuse(Join("sizes from ", least, " to ", greatest, " are asked for; at most ", kMaxSide,
                " pixels are taken"));
  }
  if (least > 0 && greatest > 0 && least > greatest) {
    refuse(Join("min_size is ", least, " and max_size ", greatest, "; the first must not be more"));
  }
  for (const int64_t size : {least, greatest}) {
    if (size == 0 || size >= crop) continue;
    refuse(Join("a shorter side of ", size, " is asked for, but the crop has ", crop,
                "; no size may be smaller"));
  }
}

void RandomResize::CheckParts() const {
  const caffe::RandomAspectRatioParameter& param = param_.random_aspect_ratio_param();
  const auto refuse = [&](const std::string& what) { layer_.FailIn(kTransform, Param(), what); };
  CheckWords(param.resize_param());
  if (param_.crop_size() == 0 || param_.crop_h() > 0) {
    refuse("random_aspect_ratio_param needs crop_size, the side that the parts are resized to");
  }
  if (param_.crop_size() > kMaxSide) {
    refuse(Join("crop_size is ", param_.crop_size(), "; at most ", kMaxSide, " pixels are taken"));
  }
  const float least = param.min_area_ratio(), greatest = param.max_area_ratio();
  if (!(least > 0 && least <= greatest && greatest <= 1)) {
    refuse(Join("min_area_ratio is ", least, " and max_area_ratio ", greatest,
                "; both are shares of the area above 0 up to 1, and the first is not more"));
  }
  const float change = param.aspect_ratio_change();
  if (!(change >= 0.01f && change <= 1)) {
    refuse(Join("aspect_ratio_change is ", change, "; it must be within 0.01 and 1, e.g. 0.75"));
  }
  if (param.max_attempt() > kMaxAttempts) {
    refuse(Join("max_attempt is ", param.max_attempt(), "; at most ", kMaxAttempts, " are taken"));
  }
}

void RandomResize::Check(const DatumView& datum, const std::string& record) const {
  if (datum.bytes.empty()) {
    layer_.FailWith(ErrorCode::kData, Join("record ", record, " holds numbers of type float; ",
                                           Param(), " resizes pixels of 8 bits only"));
  }
  const int64_t shorter = std::min(datum.height, datum.width);
  const int64_t longer = std::max(datum.height, datum.width);
  const auto refuse = [&](const std::string& what) {
    layer_.FailIn(kTransform, Param(),
                  Join("record ", record, " is ", datum.ShapeText(), "; ", what));
  };
  int64_t greatest = param_.crop_size();
  if (sides_) {
    const int64_t min = param_.random_resize_param().min_size();
    const int64_t max = param_.random_resize_param().max_size();
    const int64_t least = min > 0 ? min : shorter;
    greatest = max > 0 ? max : longer;
    if (least < CropSide()) {
      refuse(Join("its shorter side is smaller than the crop of ", CropSide(), ": give min_size"));
    }
    if (least > greatest) {
      refuse(Join("sizes from ", least, " to ", greatest,
                  " are none: min_size 0 stands for the "
                  "shorter side, max_size 0 for the longer one"));
    }
  }
  if (static_cast<double>(longer) / static_cast<double>(shorter) * static_cast<double>(greatest) *
          static_cast<double>(greatest) >
      static_cast<double>(kMaxPixels)) {
    refuse(Join("with a shorter side of ", greatest, " it would have more than ", kMaxPixels,
                " pixels"));
  }
}

void RandomResize::Apply(const DatumView& datum, const PhiloxKey& key, uint64_t number,
                         Image* to) const {
  const ImageView image = PictureOf(datum);
  constexpr uint32_t kFirstPass = 1;
  RecordDraws draws(key, number, kFirstPass);
  if (sides_) {
    const caffe::RandomResizeParameter& param = param_.random_resize_param();
    const int64_t least =
        param.min_size() > 0 ? param.min_size() : std::min(image.height, image.width);
    const int64_t greatest =
        param.max_size() > 0 ? param.max_size() : std::max(image.height, image.width);
    const int64_t side = least + draws.Below(greatest - least + 1);
    return ResizeShorterSide(image, side, DrawOne(param.resize_param(), &draws), to);
  }
  const caffe::RandomAspectRatioParameter& param = param_.random_aspect_ratio_param();
  for (uint32_t i = 0; i < param.max_attempt(); ++i) {
    if (TakePart(image, &draws, to)) return;
  }
  ResizeShorterSide(image, param_.crop_size(), DrawOne(param.resize_param(), &draws), to);
}

// One attempt; false when the part does not fit.
bool RandomResize::TakePart(const ImageView& image, RecordDraws* draws, Image* to) const {
  const caffe::RandomAspectRatioParameter& param = param_.random_aspect_ratio_param();
  const double change = param.aspect_ratio_change();
  const double share = draws->Within(param.min_area_ratio(), param.max_area_ratio());
  const double factor = draws->Within(change, 1 / change);
  const double side = std::sqrt(share * static_cast<double>(image.Plane()));
  int height = static_cast<int>(side * factor), width = static_cast<int>(side / factor);
  if (draws->Word() >> 31 != 0) std::swap(height, width);
  if (height < 1 || width < 1 || height > image.height || width > image.width) return false;
  const int top = static_cast<int>(draws->Below(image.height - height + 1));
  const int left = static_cast<int>(draws->Below(image.width - width + 1));
  const int crop = static_cast<int>(param_.crop_size());
  ResizeImage(image, {left, top, width, height}, crop, crop, to,
              DrawOne(param.resize_param(), draws));
  return true;
}

}  // namespace trainer
