#include "trainer/input/augment.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "color_changes.h"
#include "record_rng.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr char kAugmentTransform[] = "transform_param";
constexpr uint32_t kAugmentFirstPass = 0x20000000;

// From 1 - limit, at least 0, to 1 + limit.
float Factor(float limit, RecordRng* draws) {
  return static_cast<float>(draws->Within(std::max(0.0, 1.0 - limit), 1.0 + limit));
}

}  // namespace

Augment::Augment(const LayerSpec& layer, caffe::Phase phase)
    : layer_(layer), param_(layer.proto().transform_param()) {
  const bool trains = phase == caffe::TRAIN;
  CheckColors();
  if (param_.has_random_erasing_param()) CheckErasing();
  const caffe::ColorJitterParameter& jitter = param_.color_jitter_param();
  const bool jitters = jitter.brightness() > 0 || jitter.contrast() > 0 ||
                       jitter.saturation() > 0 || jitter.hue() > 0;
  colors_ = trains && jitters;
  lighting_ = trains && param_.lighting() > 0;
  erases_ = trains && param_.has_random_erasing_param();
}

void Augment::CheckColors() const {
  const caffe::ColorJitterParameter& jitter = param_.color_jitter_param();
  const auto check = [&](const char* name, float value, float most) {
    if (value >= 0 && value <= most) return;
    layer_.FailIn(kAugmentTransform, "color_jitter_param",
                  Join(name, " is ", value, "; it must be 0 to ", most));
  };
  constexpr float kMost = 10;
  check("brightness", jitter.brightness(), kMost);
  check("contrast", jitter.contrast(), kMost);
  check("saturation", jitter.saturation(), kMost);
  check("hue", jitter.hue(), 0.5f);
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

void Augment::Check(const DatumView& datum, const std::string& record) const {
  if (!active()) return;
  if (datum.bytes.empty()) {
    layer_.FailWith(ErrorCode::kData,
                    Join("record ", record,
                         " has float values, but color, lighting and erasing work on 8-bit pixels "
                         "only; store the images with 8 bits per channel, or remove these fields"));
  }
  if (colors_ && datum.channels != 1 && datum.channels != 3) {
    layer_.FailIn(kAugmentTransform, "color_jitter_param",
                  Join("record ", record, " is ", datum.ShapeText(),
                       "; color changes need 1 or 3 channels: set force_color"));
  }
  if (lighting_ && datum.channels != 3) {
    layer_.FailIn(kAugmentTransform, "lighting",
                  Join("record ", record, " is ", datum.ShapeText(),
                       "; lighting needs 3 channels: set force_color"));
  }
  const int values = param_.random_erasing_param().value_size();
  if (erases_ && values > 1 && values != datum.channels) {
    layer_.FailIn(kAugmentTransform, "random_erasing_param",
                  Join(values, " values for ", datum.channels, " channels (record ", record,
                       "); give one, or one per channel"));
  }
}

void Augment::Apply(const PhiloxKey& key, uint64_t number, const PixelSpan& part) const {
  RecordRng draws(key, number, kAugmentFirstPass);
  if (colors_ || lighting_) ChangeColors(&draws, part);
  if (erases_) Erase(&draws, part);
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
