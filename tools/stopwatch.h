#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

namespace trainer {

// Times of one thing measured again and again, in milliseconds.
class Samples {
 public:
  void Add(double ms) { ms_.push_back(ms); }
  bool empty() const { return ms_.empty(); }
  size_t size() const { return ms_.size(); }
  double Min() const { return ms_.empty() ? 0 : *std::ranges::min_element(ms_); }
  double Mean() const {
    double sum = 0;
    for (const double ms : ms_) sum += ms;
    return ms_.empty() ? 0 : sum / static_cast<double>(ms_.size());
  }
  double Median() const {
    if (ms_.empty()) return 0;
    std::vector<double> sorted = ms_;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    if (sorted.size() % 2 == 1) return *middle;
    return (*middle + *std::max_element(sorted.begin(), middle)) / 2;
  }
  // By how much the greater of two of them is above the mean, on average: half of Gini's mean
  // difference. 0 for fewer than two.
  double ExcessOfTwo() const {
    if (ms_.size() < 2) return 0;
    std::vector<double> sorted = ms_;
    std::ranges::sort(sorted);
    // The sum of all differences: the one at i is the greater one of i pairs, the less of the rest.
    const auto count = static_cast<double>(sorted.size());
    double differences = 0;
    for (size_t i = 0; i < sorted.size(); ++i) {
      differences += (2 * static_cast<double>(i) + 1 - count) * sorted[i];
    }
    return differences / (count * (count - 1));
  }

 private:
  std::vector<double> ms_;
};

// Runs `work` and returns how many milliseconds it took.
template <class F>
double TimeMs(F&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

}  // namespace trainer
