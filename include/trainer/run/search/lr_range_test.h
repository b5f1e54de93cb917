#pragma once
// The learning rate range test (Smith, arXiv:1506.01186): a short training whose learning rate
// grows in each iteration. The losses show which learning rate to train with.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "solver.pb.h"

namespace trainer {

class Progress;
class Solver;
struct SolverSpec;

// The learning rates of a range test.
struct LrRange {
  double from = 1e-6, to = 1;  // learning rates of the first and the last iteration
  int iterations = 200;
};

// Makes the solver's learning rate grow by a constant factor per iteration, from `range.from` to
// `range.to`, and sets max_iter. Turns off warm-up; momentum and weight decay keep their first
// values.
void RaiseLr(const LrRange& range, caffe::SolverParameter* solver);

// The losses of a range test.
class LrRangeTest {
 public:
  struct Point {
    double lr = 0, loss = 0;
    double smoothed = 0;  // value of a line that is fitted to the losses around this point
    double slope = 0;     // slope of that line, per iteration
  };
  // Indices of points.
  struct Advice {
    std::optional<size_t> steepest;  // where the loss falls fastest; nothing if it does not fall
    // The learning rate to train with: `steepest`, but at least a tenth of `highest`. If
    // training first corrects bad initial outputs, the loss falls fastest long before the learning
    // rate is high enough.
    std::optional<size_t> advised;
    size_t lowest = 0;           // the minimum of the smoothed losses
    size_t highest = 0;          // the last point from `lowest` on before the smoothed loss rises
    bool still_falling = false;  // whether the minimum is at the end
  };

  // Adds the loss of the next iteration and the learning rate of its update. Each learning rate
  // must be the one before times a constant factor.
  void Add(double lr, double loss);
  // Returns whether the running mean of the losses is above its minimum by more than three times
  // its fall from the first losses (or the size of the minimum, if that is larger), so that no
  // later point is useful.
  bool HasDiverged() const;

  size_t size() const { return points_.size(); }
  // Returns all points, with the line that is fitted to the losses around each.
  std::vector<Point> Points() const;
  // Returns what the points show. Needs at least kFewest points.
  static Advice FindAdvice(const std::vector<Point>& points);
  static constexpr size_t kFewest = 10;

 private:
  std::vector<Point> points_;      // `lr` and `loss` only
  double mean_ = 0;                // running mean of the losses
  double first_ = 0, lowest_ = 0;  // values of that mean
};

// The points of a finished range test.
struct LrRangeResult {
  std::vector<LrRangeTest::Point> points;
  bool diverged = false;
  std::string solver;  // the solver's file, for the command in the advice
};

// Trains `solver`, which was made from `spec` after RaiseLr changed it, until the last iteration or
// until the loss diverges. Ranks get the same losses, so all of them stop after the same iteration.
// Adds each iteration to `progress` unless it is null. Throws kDiverged if the loss diverges within
// LrRangeTest::kFewest iterations.
LrRangeResult RunLrRangeTest(const SolverSpec& spec, Progress* progress, Solver* solver);

}  // namespace trainer
