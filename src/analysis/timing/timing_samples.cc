#include "trainer/analysis/timing/timing_samples.h"

#include <algorithm>
#include <cstddef>

namespace trainer {

double TimingSamples::Min() const { return ms_.empty() ? 0 : *std::ranges::min_element(ms_); }

double TimingSamples::Mean() const {
  double sum = 0;
  for (const double ms : ms_) sum += ms;
  return ms_.empty() ? 0 : sum / static_cast<double>(ms_.size());
}

double TimingSamples::Median() const {
  if (ms_.empty()) return 0;
  std::vector<double> sorted = ms_;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  if (sorted.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(sorted.begin(), middle)) / 2;
}

double TimingSamples::ExcessOfTwo() const {
  if (ms_.size() < 2) return 0;
  std::vector<double> sorted = ms_;
  std::ranges::sort(sorted);
  // The sum of all pairwise differences: sample i is the larger one of i pairs and the smaller one
  // of the others.
  const auto count = static_cast<double>(sorted.size());
  double differences = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    differences += (2 * static_cast<double>(i) + 1 - count) * sorted[i];
  }
  return differences / (count * (count - 1));
}

}  // namespace trainer
