#pragma once

#include <chrono>
#include <vector>

namespace trainer {

// Repeated timings of one piece of work, in milliseconds.
class TimingSamples {
 public:
  void Add(double ms) { ms_.push_back(ms); }
  bool empty() const { return ms_.empty(); }
  size_t size() const { return ms_.size(); }
  // Each of these is 0 without samples.
  double Min() const;
  double Mean() const;
  double Median() const;
  // Returns the expected excess of the larger of two random samples over the mean: half of Gini's
  // mean difference. 0 for fewer than two samples.
  double ExcessOfTwo() const;

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
