#include "trainer/input/augment.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "augment/affine_warp.h"
#include "augment/auto_augment.h"
#include "augment/byte_changes.h"
#include "augment/gaussian_blur.h"
#include "color_changes.h"
#include "record_rng.h"

namespace trainer {
namespace {

constexpr uint32_t kAugmentFirstPass = 0x20000000, kAugmentShapeFirstPass = 0x30000000,
                   kAutoAugmentFirstPass = 0x31000000, kBlurFirstPass = 0x32000000;

// From 1 - limit, at least 0, to 1 + limit.
float Factor(float limit, RecordRng* draws) {
  return static_cast<float>(draws->Within(std::max(0.0, 1.0 - limit), 1.0 + limit));
}

// Draws a number from -limit to limit.
double DrawBothWays(double limit, RecordRng* draws) { return draws->Within(-limit, limit); }

// Reads the interpolation and the fill of a message.
template <class Param>
WarpStyle StyleOf(const Param& param) {
  WarpStyle style;
  style.bilinear = param.interpolation() == caffe::RandomAffineParameter::BILINEAR;
  for (const float value : param.fill()) {
    style.fill.push_back(static_cast<uint8_t>(value + 0.5f));
  }
  return style;
}

// Whether a random affine map may change an image.
bool ChangesShape(const caffe::RandomAffineParameter& param) {
  return param.degrees() > 0 || param.translate_x() > 0 || param.translate_y() > 0 ||
         param.min_scale() != 1 || param.max_scale() != 1 || param.shear_x() > 0 ||
         param.shear_y() > 0;
}

}  // namespace

Augment::Augment(const LayerSpec& layer, caffe::Phase phase)
    : layer_(layer), param_(layer.proto().transform_param()) {
  CheckAffine();
  CheckAutoAugment();
  CheckColors();
  CheckBlur();
  if (param_.has_random_erasing_param()) CheckErasing();
  if (phase != caffe::TRAIN) return;
  const caffe::ColorJitterParameter& jitter = param_.color_jitter_param();
  flips_ = param_.vflip() > 0;
  warps_ = ChangesShape(param_.random_affine_param());
  draws_operations_ = param_.auto_augment() != caffe::TransformationParameter::NONE;
  colors_ = jitter.brightness() > 0 || jitter.contrast() > 0 || jitter.saturation() > 0 ||
            jitter.hue() > 0;
  lighting_ = param_.lighting() > 0;
  blurs_ = param_.has_gaussian_blur_param();
  erases_ = param_.has_random_erasing_param();
  const std::pair<const char*, bool> fields[] = {{"vflip", flips_},
                                                 {"random_affine_param", warps_},
                                                 {"auto_augment", draws_operations_},
                                                 {"color_jitter_param", colors_},
                                                 {"lighting", lighting_},
                                                 {"gaussian_blur_param", blurs_},
                                                 {"random_erasing_param", erases_}};
  const auto* const first = std::ranges::find_if(fields, [](const auto& it) { return it.second; });
  if (first != std::end(fields)) first_field_ = first->first;
}

void Augment::Apply(const PhiloxKey& key, uint64_t number, const PixelSpan& part) const {
  if (flips_ || warps_) ChangeShape(key, number, part);
  if (draws_operations_) DrawOperations(key, number, part);
  RecordRng draws(key, number, kAugmentFirstPass);
  if (colors_ || lighting_) ChangeColors(&draws, part);
  if (blurs_) Blur(key, number, part);
  if (erases_) Erase(&draws, part);
}

void Augment::ChangeShape(const PhiloxKey& key, uint64_t number, const PixelSpan& part) const {
  RecordRng draws(key, number, kAugmentShapeFirstPass);
  if (draws.Unit() < param_.vflip()) FlipRows(part);
  const caffe::RandomAffineParameter& param = param_.random_affine_param();
  if (!warps_ || draws.Unit() >= param.probability()) return;
  AffineChange change;
  change.degrees = DrawBothWays(param.degrees(), &draws);
  const double most_x = param.translate_x() * static_cast<double>(part.width);
  const double most_y = param.translate_y() * static_cast<double>(part.height);
  change.shift_x = std::nearbyint(DrawBothWays(most_x, &draws));
  change.shift_y = std::nearbyint(DrawBothWays(most_y, &draws));
  change.scale = draws.Within(param.min_scale(), param.max_scale());
  change.shear_x = DrawBothWays(param.shear_x(), &draws);
  change.shear_y = DrawBothWays(param.shear_y(), &draws);
  WarpAffine(MapOf(change, part.height, part.width), StyleOf(param), part);
}

void Augment::DrawOperations(const PhiloxKey& key, uint64_t number, const PixelSpan& part) const {
  RecordRng draws(key, number, kAutoAugmentFirstPass);
  const caffe::AutoAugmentParameter& param = param_.auto_augment_param();
  const WarpStyle style = StyleOf(param);
  if (param_.auto_augment() == caffe::TransformationParameter::TRIVIAL) {
    return TrivialAugment(style, &draws, part);
  }
  RandAugment(static_cast<int>(param.num_ops()), static_cast<int>(param.magnitude()), style, &draws,
              part);
}

void Augment::Blur(const PhiloxKey& key, uint64_t number, const PixelSpan& part) const {
  RecordRng draws(key, number, kBlurFirstPass);
  const caffe::GaussianBlurParameter& param = param_.gaussian_blur_param();
  if (draws.Unit() >= param.probability()) return;
  const double sigma = draws.Within(param.min_sigma(), param.max_sigma());
  int64_t half = param.kernel_size() / 2;
  if (param.kernel_size() == 0) {  // GaussianBlur needs sides longer than half the kernel
    half =
        std::min(static_cast<int64_t>(std::ceil(3 * sigma)), std::min(part.height, part.width) - 1);
  }
  GaussianBlur(static_cast<int>(2 * half + 1), sigma, part);
}

void Augment::ChangeColors(RecordRng* draws, const PixelSpan& part) const {
  thread_local std::vector<float> kept;  // of the last image of this thread
  FloatImage pixels(part.channels, part.height, part.width, &kept);
  for (int c = 0; c < part.channels; ++c) {
    for (int64_t y = 0; y < part.height; ++y) {
      const uint8_t* const from = part.pixels + c * part.plane + y * part.row;
      std::copy(from, from + part.width, pixels.Row(c, y));
    }
  }
  const caffe::ColorJitterParameter& jitter = param_.color_jitter_param();
  int order[] = {0, 1, 2, 3};
  for (int i = 3; colors_ && i > 0; --i) std::swap(order[i], order[draws->Below(i + 1)]);
  for (const int change : order) {
    if (!colors_) break;
    if (change == 0 && jitter.brightness() > 0) {
      ScaleBrightness(Factor(jitter.brightness(), draws), &pixels);
    }
    if (change == 1 && jitter.contrast() > 0) {
      ScaleContrast(Factor(jitter.contrast(), draws), &pixels);
    }
    if (change == 2 && jitter.saturation() > 0) {
      ScaleSaturation(Factor(jitter.saturation(), draws), &pixels);
    }
    if (change == 3 && jitter.hue() > 0) {
      TurnHue(static_cast<float>(draws->Within(-jitter.hue(), jitter.hue())), &pixels);
    }
  }
  if (lighting_) {
    double weights[3];
    for (double& weight : weights) weight = param_.lighting() * draws->Normal();
    AddLighting(weights, &pixels);
  }
  for (int c = 0; c < part.channels; ++c) {
    for (int64_t y = 0; y < part.height; ++y) {
      const float* const from = pixels.Row(c, y);
      uint8_t* const to = part.pixels + c * part.plane + y * part.row;
      for (int64_t x = 0; x < part.width; ++x) to[x] = static_cast<uint8_t>(from[x] + 0.5f);
    }
  }
}

void Augment::Erase(RecordRng* draws, const PixelSpan& part) const {
  constexpr int kAttempts = 10;
  const caffe::RandomErasingParameter& param = param_.random_erasing_param();
  if (draws->Unit() >= param.probability()) return;
  const double longest = -std::log(static_cast<double>(param.min_aspect()));
  for (int i = 0; i < kAttempts; ++i) {
    const double area = draws->Within(param.min_area_ratio(), param.max_area_ratio()) *
                        static_cast<double>(part.height * part.width);
    const double aspect = std::exp(draws->Within(-longest, longest));
    const int64_t height = std::llround(std::sqrt(area * aspect));
    const int64_t width = std::llround(std::sqrt(area / aspect));
    if (height < 1 || width < 1 || height >= part.height || width >= part.width) continue;
    const int64_t top = draws->Below(part.height - height + 1);
    const int64_t left = draws->Below(part.width - width + 1);
    for (int c = 0; c < part.channels; ++c) {
      const int values = param.value_size();
      const float value = values == 0 ? 0 : param.value(values > 1 ? c : 0);
      for (int64_t y = top; y < top + height; ++y) {
        uint8_t* const row = part.pixels + c * part.plane + y * part.row + left;
        for (int64_t x = 0; x < width; ++x) {
          row[x] = static_cast<uint8_t>(values == 0 ? draws->Word() >> 24
                                                    : static_cast<uint32_t>(value + 0.5f));
        }
      }
    }
    return;
  }
}

}  // namespace trainer
