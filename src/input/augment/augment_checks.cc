#include <algorithm>
#include <string>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/input/augment.h"

namespace trainer {
namespace {

constexpr char kAugmentTransform[] = "transform_param";

}  // namespace

void Augment::CheckRange(const char* param, const char* field, float value, float least,
                         float most) const {
  if (value >= least && value <= most) return;
  layer_.FailIn(kAugmentTransform, param,
                Join(field, " is ", value, "; it must be ", least, " to ", most));
}

void Augment::CheckFill(const char* param, std::span<const float> fill) const {
  for (const float value : fill) {
    if (value >= 0 && value <= 255) continue;
    layer_.FailIn(kAugmentTransform, param,
                  Join("fill is ", value,
                       "; it must be a pixel value from 0 to 255 (before mean and scale)"));
  }
}

void Augment::CheckAffine() const {
  constexpr float kMostShear = 80, kLeastScale = 0.01f, kMostScale = 100;
  constexpr char kParam[] = "random_affine_param";
  CheckRange("vflip", "vflip", param_.vflip(), 0, 1);
  const caffe::RandomAffineParameter& param = param_.random_affine_param();
  CheckRange(kParam, "degrees", param.degrees(), 0, 180);
  CheckRange(kParam, "translate_x", param.translate_x(), 0, 1);
  CheckRange(kParam, "translate_y", param.translate_y(), 0, 1);
  CheckRange(kParam, "shear_x", param.shear_x(), 0, kMostShear);
  CheckRange(kParam, "shear_y", param.shear_y(), 0, kMostShear);
  CheckRange(kParam, "probability", param.probability(), 0, 1);
  CheckFill(kParam, {param.fill().data(), static_cast<size_t>(param.fill_size())});
  const float least = param.min_scale(), most = param.max_scale();
  if (least >= kLeastScale && least <= most && most <= kMostScale) return;
  layer_.FailIn(kAugmentTransform, kParam,
                Join("min_scale is ", least, " and max_scale ", most, "; both must be ",
                     kLeastScale, " to ", kMostScale, ", and the first must not be larger"));
}

void Augment::CheckAutoAugment() const {
  constexpr uint32_t kMostOps = 16, kMostMagnitude = 30;
  constexpr char kParam[] = "auto_augment_param";
  if (!param_.has_auto_augment_param()) return;
  if (!param_.has_auto_augment()) {
    layer_.FailIn(kAugmentTransform, kParam,
                  "auto_augment_param has no effect without auto_augment; give auto_augment: "
                  "RANDAUGMENT, or TRIVIAL");
  }
  const caffe::AutoAugmentParameter& param = param_.auto_augment_param();
  CheckFill(kParam, {param.fill().data(), static_cast<size_t>(param.fill_size())});
  if (param.num_ops() < 1 || param.num_ops() > kMostOps) {
    layer_.FailIn(kAugmentTransform, kParam,
                  Join("num_ops is ", param.num_ops(), "; it must be 1 to ", kMostOps));
  }
  if (param.magnitude() > kMostMagnitude) {
    layer_.FailIn(kAugmentTransform, kParam,
                  Join("magnitude is ", param.magnitude(), "; it must be 0 to ", kMostMagnitude));
  }
}

void Augment::CheckBlur() const {
  constexpr uint32_t kMostSide = 255;
  constexpr float kMostSigma = 40;  // its kernel, 241, is not larger than kMostSide
  constexpr char kParam[] = "gaussian_blur_param";
  const caffe::GaussianBlurParameter& param = param_.gaussian_blur_param();
  CheckRange(kParam, "probability", param.probability(), 0, 1);
  const uint32_t side = param.kernel_size();
  if (side > kMostSide || (side > 0 && side % 2 == 0)) {
    layer_.FailIn(kAugmentTransform, kParam,
                  Join("kernel_size is ", side, "; it must be odd and at most ", kMostSide,
                       ", or 0 for 2 * ceil(3 * sigma) + 1"));
  }
  const float least = param.min_sigma(), most = param.max_sigma();
  if (least > 0 && least <= most && most <= kMostSigma) return;
  layer_.FailIn(
      kAugmentTransform, kParam,
      Join("min_sigma is ", least, " and max_sigma ", most, "; both must be above 0 and at most ",
           kMostSigma, ", and the first must not be larger"));
}

void Augment::CheckColors() const {
  const caffe::ColorJitterParameter& jitter = param_.color_jitter_param();
  constexpr char kParam[] = "color_jitter_param";
  constexpr float kMost = 10;
  CheckRange(kParam, "brightness", jitter.brightness(), 0, kMost);
  CheckRange(kParam, "contrast", jitter.contrast(), 0, kMost);
  CheckRange(kParam, "saturation", jitter.saturation(), 0, kMost);
  CheckRange(kParam, "hue", jitter.hue(), 0, 0.5f);
  if (!(param_.lighting() >= 0 && param_.lighting() <= kMost)) {
    layer_.FailIn(
        kAugmentTransform, "lighting",
        Join("lighting is ", param_.lighting(), "; it must be 0 to ", kMost, ", e.g. 0.1"));
  }
}

void Augment::CheckErasing() const {
  const caffe::RandomErasingParameter& param = param_.random_erasing_param();
  const auto refuse = [&](const std::string& what) {
    layer_.FailIn(kAugmentTransform, "random_erasing_param", what);
  };
  if (!(param.probability() >= 0 && param.probability() <= 1)) {
    refuse(Join("probability is ", param.probability(), "; it must be 0 to 1"));
  }
  if (!(param.min_area_ratio() > 0 && param.min_area_ratio() <= param.max_area_ratio() &&
        param.max_area_ratio() < 1)) {
    refuse(Join("min_area_ratio is ", param.min_area_ratio(), " and max_area_ratio ",
                param.max_area_ratio(),
                "; both must be above 0 and below 1, and the first must not be larger"));
  }
  if (!(param.min_aspect() >= 0.01f && param.min_aspect() <= 1)) {
    refuse(Join("min_aspect is ", param.min_aspect(), "; it must be 0.01 to 1, e.g. 0.3"));
  }
  for (const float value : param.value()) {
    if (!(value >= 0 && value <= 255)) {
      refuse(Join("value is ", value,
                  "; it must be a pixel value from 0 to 255 (before mean and scale)"));
    }
  }
}

void Augment::CheckFillCount(const char* param, int values, const DatumView& datum,
                             const std::string& record) const {
  if (values <= 1 || values == datum.channels) return;
  layer_.FailIn(kAugmentTransform, param,
                Join(values, " values for ", datum.channels, " channels (record ", record,
                     "); give one, or one per channel"));
}

void Augment::Check(const DatumView& datum, const ImageShape& window,
                    const std::string& record) const {
  if (!active()) return;
  if (datum.bytes.empty()) {
    layer_.FailWith(ErrorCode::kData,
                    Join("record ", record, " has float values, but ", first_field_,
                         " changes 8-bit pixels only; store the images with 8 bits per channel, or "
                         "remove this field"));
  }
  const auto need_channels = [&](bool has, const char* field, const char* what) {
    if (has) return;
    layer_.FailIn(kAugmentTransform, field,
                  Join("record ", record, " is ", datum.ShapeText(), "; ", what,
                       " channels: set force_color"));
  };
  const bool grey_or_color = datum.channels == 1 || datum.channels == 3;
  need_channels(!colors_ || grey_or_color, "color_jitter_param", "color changes need 1 or 3");
  need_channels(!lighting_ || datum.channels == 3, "lighting", "lighting needs 3");
  need_channels(!draws_operations_ || grey_or_color, "auto_augment", "auto_augment needs 1 or 3");
  if (erases_) {
    CheckFillCount("random_erasing_param", param_.random_erasing_param().value_size(), datum,
                   record);
  }
  if (warps_) {
    CheckFillCount("random_affine_param", param_.random_affine_param().fill_size(), datum, record);
  }
  if (draws_operations_) {
    CheckFillCount("auto_augment_param", param_.auto_augment_param().fill_size(), datum, record);
  }
  const int64_t side = param_.gaussian_blur_param().kernel_size();
  if (blurs_ && side / 2 >= std::min(window.height, window.width)) {
    layer_.FailIn(kAugmentTransform, "gaussian_blur_param",
                  Join("kernel_size is ", side, ", but record ", record, " gives a ",
                       window.ToString(), " image; it must be less than twice each side"));
  }
}

}  // namespace trainer
