#include "mixup.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "record_rng.h"
#include "trainer/input/normalize.h"

namespace trainer {
namespace {

constexpr uint32_t kMixupFirstPass = 0x28000000;

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

void Mix(float share, std::span<float> item, std::span<const float> other) {
  for (size_t i = 0; i < item.size(); ++i) item[i] = MixedNumber(share, item[i], other[i]);
}

}  // namespace

double DrawMixWeight(const PhiloxKey& key, uint64_t number, double alpha) {
  RecordRng draws(key, number, kMixupFirstPass);
  const double own = Gamma(alpha, &draws), other = Gamma(alpha, &draws);
  return own + other > 0 ? own / (own + other) : 1;
}

void DrawMixWeights(const PhiloxKey& key, double alpha, std::span<const uint64_t> numbers,
                    std::span<float> mix_weights) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    mix_weights[i] =
        numbers.size() == 1 ? 1 : static_cast<float>(DrawMixWeight(key, numbers[i], alpha));
  }
}

void MixItems(std::span<const float> mix_weights, std::span<float> items) {
  const size_t count = mix_weights.size(), width = items.size() / count;
  const std::vector<float> first(items.begin(), items.begin() + static_cast<int64_t>(width));
  for (size_t i = 0; i < count; ++i) {
    const bool last = i + 1 == count;
    Mix(mix_weights[i], items.subspan(i * width, width),
        last ? std::span<const float>(first) : items.subspan((i + 1) * width, width));
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
