#include "trainer/run/search/lr_range_test.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "trainer/base/error/error.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/text/text.h"
#include "trainer/config/solver_spec.h"
#include "trainer/solver/lr_schedule.h"
#include "trainer/solver/solver.h"

namespace trainer {
namespace {

using Point = LrRangeTest::Point;

// Weight of the old value in the running mean, which hides how much single batches differ.
constexpr double kOldWeight = 0.9;
constexpr size_t kBeginning = 5;  // points before the running mean is compared

// Returns how many points on each side of a point its line is fitted to: a twentieth of all.
size_t Reach(size_t points) { return std::max<size_t>(2, points / 20); }

// Fits a line to the losses around point `at` (LOESS; the weight of a loss falls with its distance,
// by the tricube function), and sets the point's `smoothed` and `slope`.
void FitLine(std::vector<Point>& points, size_t at) {
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
  points[at].smoothed = (y_sum - points[at].slope * x_sum) / weights;
}

// Returns the root mean square of loss - smoothed over the first `end` points.
double Noise(const std::vector<Point>& points, size_t end) {
  double squares = 0;
  for (size_t i = 0; i < end; ++i) squares += std::pow(points[i].loss - points[i].smoothed, 2);
  return std::sqrt(squares / static_cast<double>(std::max<size_t>(end, 1)));
}

// Returns the last point from `lowest` on whose smoothed loss is as low as that one, except for
// noise or 1 % of `fall`, by which the loss fell.
size_t EndOfLowLosses(const std::vector<Point>& points, size_t lowest, size_t end, double fall) {
  const double most = points[lowest].smoothed + std::max(Noise(points, lowest + 1), 0.01 * fall);
  size_t last = lowest;
  while (last + 1 < end && points[last + 1].smoothed <= most) ++last;
  return last;
}

}  // namespace

void RaiseLr(const LrRange& range, caffe::SolverParameter* solver) {
  const double steps = std::max(range.iterations - 1, 1);
  solver->set_lr_policy("exp");
  solver->set_base_lr(static_cast<float>(range.from));
  solver->set_gamma(static_cast<float>(std::pow(range.to / range.from, 1 / steps)));
  solver->set_max_iter(range.iterations);
  solver->set_min_lr(0);
  solver->set_warmup_iter(0);
  solver->set_rampup_interval(0);
  solver->set_momentum_policy("fixed");
  solver->set_weight_decay_policy("fixed");
}

void LrRangeTest::Add(double lr, double loss) {
  mean_ = points_.empty() ? loss : kOldWeight * mean_ + (1 - kOldWeight) * loss;
  points_.push_back({lr, loss, loss, 0});
  if (points_.size() <= kBeginning) first_ = lowest_ = mean_;
  lowest_ = std::min(lowest_, mean_);
}

bool LrRangeTest::HasDiverged() const {
  const double scale = std::max(std::abs(lowest_), first_ - lowest_);
  return points_.size() > kBeginning && mean_ - lowest_ > 3 * scale;
}

std::vector<Point> LrRangeTest::Points() const {
  std::vector<Point> points = points_;
  for (size_t i = 0; points.size() > 2 && i < points.size(); ++i) FitLine(points, i);
  return points;
}

// Leaves the ends out, because a line through points on one side only is unreliable.
LrRangeTest::Advice LrRangeTest::FindAdvice(const std::vector<Point>& points) {
  const auto reach = static_cast<std::ptrdiff_t>(Reach(points.size()));
  const auto begin = points.begin() + reach, end = points.end() - reach;
  const auto lowest = std::min_element(
      begin, end, [](const Point& a, const Point& b) { return a.smoothed < b.smoothed; });
  Advice advice;
  advice.lowest = static_cast<size_t>(lowest - points.begin());
  advice.still_falling = end - lowest <= reach;
  const double fall = begin->smoothed - lowest->smoothed;
  advice.highest =
      EndOfLowLosses(points, advice.lowest, static_cast<size_t>(end - points.begin()), fall);
  if (fall <= 2 * Noise(points, advice.lowest + 1)) return advice;
  const auto steepest = std::min_element(
      begin, lowest + 1, [](const Point& a, const Point& b) { return a.slope < b.slope; });
  advice.steepest = static_cast<size_t>(steepest - points.begin());
  const double least = points[advice.highest].lr / 10;
  const auto advised =
      std::find_if(steepest, lowest, [&](const Point& point) { return point.lr >= least; });
  advice.advised = static_cast<size_t>(advised - points.begin());
  return advice;
}

LrRangeResult RunLrRangeTest(const SolverSpec& spec, Progress* progress, Solver* solver) {
  LrRangeTest test;
  LrRangeResult result;
  result.solver = spec.file;
  const int iterations = spec.proto.max_iter();
  while (solver->iter() < iterations && !result.diverged) {
    const int iter = solver->iter();
    const float lr = LearningRate(spec.proto, iter, 0);
    try {
      const float loss = solver->Step();
      test.Add(lr, loss);
      if (progress != nullptr) progress->Add(1);
      if (iter % std::max(1, iterations / 10) == 0) {
        LOG(INFO) << "Iteration " << iter << ", lr = " << lr << ", loss = " << loss;
      }
      result.diverged = test.HasDiverged();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kDiverged) throw;
      result.diverged = true;
    }
  }
  if (test.size() < LrRangeTest::kFewest) {
    throw Error(ErrorCode::kDiverged,
                Join("the loss diverges within ", test.size(), " iterations, at the learning rate ",
                     LearningRate(spec.proto, static_cast<int>(test.size()), 0),
                     ": try a lower --from, and check the scale of the data"));
  }
  result.points = test.Points();
  return result;
}

}  // namespace trainer
