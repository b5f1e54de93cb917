#include "mixup.h"

#include <algorithm>
#include <cmath>

#include "record_rng.h"

namespace trainer {
namespace {

constexpr uint32_t kMixupFirstPass = 0x28000000, kCutMixFirstPass = 0x2C000000;

// Marsaglia and Tsang 2000; for a shape below 1 by way of that above it.
double Gamma(double shape, RecordRng* draws) {
  if (shape < 1) {
    const double boost = std::pow(draws->Unit(), 1 / shape);
    return boost * Gamma(shape + 1, draws);
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = draws->Normal(), root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(draws->Unit()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

double Beta(double alpha, RecordRng* draws) {
  const double own = Gamma(alpha, draws), other = Gamma(alpha, draws);
  return own + other > 0 ? own / (own + other) : 1;
}

ImageMix DrawMix(const PhiloxKey& key, const MixOptions& options, uint64_t number, int64_t height,
                 int64_t width) {
  ImageMix mix;
  RecordRng draws(key, number, kCutMixFirstPass);
  const bool cuts =
      options.cutmix > 0 && (options.mixup == 0 || draws.Unit() < options.switch_prob);
  if (!cuts) {
    mix.pixel_weight = static_cast<float>(DrawMixWeight(key, number, options.mixup));
    mix.label_weight = mix.pixel_weight;
    return mix;
  }
  const int64_t row = draws.Below(height), column = draws.Below(width);
  mix.box = BoxAround(1 - Beta(options.cutmix, &draws), row, column, height, width);
  const int64_t area = int64_t{mix.box.bottom - mix.box.top} * (mix.box.right - mix.box.left);
  mix.label_weight =
      static_cast<float>(1 - static_cast<double>(area) / static_cast<double>(height * width));
  return mix;
}

void Mix(float share, std::span<float> item, std::span<const float> other) {
  for (size_t i = 0; i < item.size(); ++i) item[i] = MixedNumber(share, item[i], other[i]);
}

// Replaces the box of an image by the same box of `from`. A row has `row` numbers.
void Paste(const CutBox& box, int64_t row, int64_t channels, std::span<const float> from,
           std::span<float> to) {
  for (int64_t h = box.top; h < box.bottom; ++h) {
    const int64_t at = h * row + box.left * channels;
    std::copy_n(from.data() + at, (box.right - box.left) * channels, to.data() + at);
  }
}

}  // namespace

double DrawMixWeight(const PhiloxKey& key, uint64_t number, double alpha) {
  RecordRng draws(key, number, kMixupFirstPass);
  return Beta(alpha, &draws);
}

std::vector<ImageMix> DrawMixes(const PhiloxKey& key, const MixOptions& options,
                                std::span<const uint64_t> numbers, int64_t height, int64_t width) {
  std::vector<ImageMix> mixes(numbers.size());
  for (size_t i = 0; numbers.size() > 1 && i < numbers.size(); ++i) {
    mixes[i] = DrawMix(key, options, numbers[i], height, width);
  }
  return mixes;
}

CutBox BoxAround(double cut, int64_t row, int64_t column, int64_t height, int64_t width) {
  const double half = 0.5 * std::sqrt(cut);
  const auto tall = static_cast<int64_t>(half * static_cast<double>(height));
  const auto wide = static_cast<int64_t>(half * static_cast<double>(width));
  return {static_cast<int32_t>(std::max<int64_t>(row - tall, 0)),
          static_cast<int32_t>(std::max<int64_t>(column - wide, 0)),
          static_cast<int32_t>(std::min(row + tall, height)),
          static_cast<int32_t>(std::min(column + wide, width))};
}

void MixItems(std::span<const float> mix_weights, std::span<float> items) {
  MixImages(mix_weights, {}, 0, 0, items);
}

void MixImages(std::span<const float> mix_weights, std::span<const CutBox> boxes, int64_t width,
               int64_t channels, std::span<float> images) {
  const size_t count = mix_weights.size(), size = images.size() / count;
  const std::vector<float> first(images.begin(), images.begin() + static_cast<int64_t>(size));
  for (size_t i = 0; i < count; ++i) {
    const std::span<float> image = images.subspan(i * size, size);
    const std::span<const float> next =
        i + 1 == count ? std::span<const float>(first) : images.subspan((i + 1) * size, size);
    if (boxes.empty() || boxes[i].IsEmpty()) {
      Mix(mix_weights[i], image, next);
    } else {
      Paste(boxes[i], width * channels, channels, next, image);
    }
  }
}

void SpreadLabels(int classes, std::span<float> labels) {
  const auto width = static_cast<size_t>(classes);
  for (size_t at = 0; at < labels.size(); at += width) {
    const std::span<float> own = labels.subspan(at, width);
    const auto label = static_cast<size_t>(own[0]);
    std::ranges::fill(own, 0.0f);
    own[label] = 1;
  }
}

}  // namespace trainer
