#include "trainer/run/search/lr_range_test.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace trainer {
namespace {

using Point = LrRangeTest::Point;

// Of the running mean: losses of single batches jump.
constexpr double kOldShare = 0.9;
constexpr size_t kBeginning = 5;  // points until the running mean counts

// How many points on each side count for the line through one.
size_t Reach(size_t points) { return std::max<size_t>(2, points / 20); }

// The line through the losses around point `at`, which count less the further they are.
void Fit(std::vector<Point>& points, size_t at) {
  const size_t reach = Reach(points.size());
  const size_t begin = at < reach ? 0 : at - reach, end = std::min(points.size(), at + reach + 1);
  double weights = 0, x_sum = 0, y_sum = 0, xx_sum = 0, xy_sum = 0;
  for (size_t i = begin; i < end; ++i) {
    const double x = static_cast<double>(i) - static_cast<double>(at), y = points[i].loss;
    const double far = std::abs(x) / static_cast<double>(reach + 1);
    const double weight = std::pow(1 - far * far * far, 3);
    weights += weight;
    x_sum += weight * x;
    y_sum += weight * y;
    xx_sum += weight * x * x;
    xy_sum += weight * x * y;
  }
  const double spread = weights * xx_sum - x_sum * x_sum;
  points[at].slope = (weights * xy_sum - x_sum * y_sum) / spread;
  points[at].smooth = (y_sum - points[at].slope * x_sum) / weights;
}

// How far losses usually are from the smoothed ones.
double Noise(const std::vector<Point>& points, size_t end) {
  double squares = 0;
  for (size_t i = 0; i < end; ++i) squares += std::pow(points[i].loss - points[i].smooth, 2);
  return std::sqrt(squares / static_cast<double>(std::max<size_t>(end, 1)));
}

}  // namespace

void RaiseLr(double from, double to, int iterations, caffe::SolverParameter* solver) {
  const double steps = std::max(iterations - 1, 1);
  solver->set_lr_policy("exp");
  solver->set_base_lr(static_cast<float>(from));
  solver->set_gamma(static_cast<float>(std::pow(to / from, 1 / steps)));
  solver->set_max_iter(iterations);
  solver->set_min_lr(0);
  solver->set_warmup_iter(0);
  solver->set_rampup_interval(0);
  solver->set_momentum_policy("fixed");
  solver->set_weight_decay_policy("fixed");
}

void LrRangeTest::Add(double rate, double loss) {
  mean_ = points_.empty() ? loss : kOldShare * mean_ + (1 - kOldShare) * loss;
  points_.push_back({rate, loss, loss, 0});
  if (points_.size() <= kBeginning) first_ = lowest_ = mean_;
  lowest_ = std::min(lowest_, mean_);
}

bool LrRangeTest::HasDiverged() const {
  const double scale = std::max(std::abs(lowest_), first_ - lowest_);
  return points_.size() > kBeginning && mean_ - lowest_ > 3 * scale;
}

std::vector<Point> LrRangeTest::Points() const {
  std::vector<Point> points = points_;
  for (size_t i = 0; points.size() > 2 && i < points.size(); ++i) Fit(points, i);
  return points;
}

// Lines through points of one side alone tell little, so the ends are left out.
LrRangeTest::Advice LrRangeTest::AdviceOf(const std::vector<Point>& points) {
  const auto reach = static_cast<std::ptrdiff_t>(Reach(points.size()));
  const auto begin = points.begin() + reach, end = points.end() - reach;
  const auto lowest = std::min_element(
      begin, end, [](const Point& a, const Point& b) { return a.smooth < b.smooth; });
  Advice advice;
  advice.lowest = static_cast<size_t>(lowest - points.begin());
  advice.still_falling = end - lowest <= reach;
  if (begin->smooth - lowest->smooth <= 2 * Noise(points, advice.lowest + 1)) return advice;
  const auto steepest = std::min_element(
      begin, lowest + 1, [](const Point& a, const Point& b) { return a.slope < b.slope; });
  advice.steepest = static_cast<size_t>(steepest - points.begin());
  return advice;
}

}  // namespace trainer
