#pragma once
// The losses of a run whose learning rate rises from iteration to iteration, and what they say of
// the rate to train with (the range test of Smith, arXiv:1506.01186).

#include <optional>
#include <vector>

#include "solver.pb.h"

namespace trainer {

// Makes the solver's rate rise by one factor per iteration, from `from` in the first to `to` in the
// last of `iterations`. Momentum and weight decay keep their first values.
void RaiseLr(double from, double to, int iterations, caffe::SolverParameter* solver);

class LrRangeTest {
 public:
  struct Point {
    double rate = 0, loss = 0;
    double smooth = 0;  // of a line through the losses around it
    double slope = 0;   // of that line, per iteration
  };
  // Indices of points.
  struct Advice {
    std::optional<size_t> steepest;  // where the loss falls fastest; nothing where it does not fall
    size_t lowest = 0;               // of the smoothed losses
    bool still_falling = false;      // the lowest is at the end
  };

  // The loss of the next iteration, at the rate that it was updated with. Each rate is the one
  // before times the same factor.
  void Add(double rate, double loss);
  // The loss has risen far above its lowest value: what comes after tells nothing more.
  bool HasDiverged() const;

  size_t size() const { return points_.size(); }
  std::vector<Point> Points() const;
  // Of at least kFewest points.
  static Advice AdviceOf(const std::vector<Point>& points);
  static constexpr size_t kFewest = 10;

 private:
  std::vector<Point> points_;      // rate and loss alone
  double mean_ = 0;                // running, of the losses
  double first_ = 0, lowest_ = 0;  // of that mean
};

}  // namespace trainer
