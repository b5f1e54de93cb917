#include "mixup.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "record_draws.h"

namespace trainer {
namespace {

constexpr uint32_t kFirstPass = 0x28000000;

// Marsaglia and Tsang 2000; for a shape below 1 by way of that above it.
double Gamma(double shape, RecordDraws* draws) {
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

void Mix(float share, std::span<float> item, std::span<const float> other) {
  for (size_t i = 0; i < item.size(); ++i) item[i] = share * item[i] + (1 - share) * other[i];
}

}  // namespace

double DrawMixShare(const PhiloxKey& key, uint64_t number, double alpha) {
  RecordDraws draws(key, number, kFirstPass);
  const double own = Gamma(alpha, &draws), other = Gamma(alpha, &draws);
  return own + other > 0 ? own / (own + other) : 1;
}

void MixItems(const PhiloxKey& key, double alpha, std::span<const uint64_t> numbers, int classes,
              std::span<float> images, std::span<float> labels) {
  const size_t count = numbers.size(), pixels = images.size() / count;
  const auto width = static_cast<size_t>(classes);
  for (size_t i = 0; i < count; ++i) {
    const auto own = labels.subspan(i * width, width);
    const auto label = static_cast<size_t>(own[0]);
    std::ranges::fill(own, 0.0f);
    own[label] = 1;
  }
  if (count < 2) return;
  const std::vector<float> first(images.begin(), images.begin() + static_cast<int64_t>(pixels));
  const std::vector<float> first_label(labels.begin(), labels.begin() + classes);
  for (size_t i = 0; i < count; ++i) {
    const auto share = static_cast<float>(DrawMixShare(key, numbers[i], alpha));
    const bool last = i + 1 == count;
    const std::span<const float> next =
        last ? std::span<const float>(first) : images.subspan((i + 1) * pixels, pixels);
    const std::span<const float> next_label =
        last ? std::span<const float>(first_label) : labels.subspan((i + 1) * width, width);
    Mix(share, images.subspan(i * pixels, pixels), next);
    Mix(share, labels.subspan(i * width, width), next_label);
  }
}

}  // namespace trainer
