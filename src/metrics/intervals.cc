#include "intervals.h"

#include <algorithm>
#include <cmath>

#include "trainer/base/random/permutation.h"
#include "trainer/base/random/philox.h"

namespace trainer {
namespace {

constexpr double kNormal975 = 1.959963984540054;  // the 97.5th percentile of a normal distribution

// Returns the value at `share` of sorted values, linear between neighbours.
double At(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

// Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference",
// Journal of the American Statistical Association 22 (1927).
MetricValue::Interval WilsonInterval(double fraction, double records) {
  const double z2 = kNormal975 * kNormal975, scale = 1 + z2 / records;
  const double middle = (fraction + z2 / (2 * records)) / scale;
  const double half = kNormal975 / scale *
                      std::sqrt(fraction * (1 - fraction) / records + z2 / (4 * records * records));
  return {std::max(0.0, middle - half), std::min(1.0, middle + half)};
}

Resamples::Resamples(size_t records) : records_(records) {
  constexpr size_t kMostSamples = 1000, kFewest = 200, kMostBytes = 200'000'000;
  if (records < 2) return;
  size_ = std::min(kMostSamples, kMostBytes / records);
  if (size_ < kFewest) size_ = 0;
  weights_.resize(size_ * records);
  const PhiloxKey key{.seed = 0, .stream = 0};
  for (size_t sample = 0; sample < size_; ++sample) {
    uint8_t* const weights = weights_.data() + sample * records;
    for (size_t block = 0; 4 * block < records; ++block) {
      const Philox4 words = PhiloxBlock(key, static_cast<uint32_t>(sample), block);
      for (size_t i = 0; i < std::min<size_t>(4, records - 4 * block); ++i) {
        ++weights[UniformBelow(words.x[i], records)];
      }
    }
  }
}

std::optional<MetricValue::Interval> Percentiles(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  return MetricValue::Interval{At(values, 0.025), At(values, 0.975)};
}

}  // namespace trainer
