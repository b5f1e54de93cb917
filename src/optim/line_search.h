#pragma once

namespace trainer {

// Finds a step t > 0 along a direction in which f falls, f(t) its value and f'(t) its slope, that
// meets the strong Wolfe conditions
//   f(t) <= f(0) + c1 t f'(0)    and    |f'(t)| <= c2 |f'(0)|,
// by the method of More and Thuente, ACM Transactions on Mathematical Software 20, 1994: an
// interval that holds such a step shrinks by cubic and quadratic interpolation.
class LineSearch {
 public:
  // `first`: the step that is tried first. The slope must be negative.
  LineSearch(double value, double slope, double first, double c1, double c2);

  double step() const { return step_; }

  enum class Outcome {
    kGoOn,   // try step()
    kFound,  // the step that was told of meets both conditions
    kEnough  // it does not, but the interval is as small as rounding lets it be
  };
  // What f and its slope are at step().
  Outcome Add(double value, double slope);

 private:
  struct Point {
    double step = 0, value = 0, slope = 0;
  };
  static double Between(const Point& a, const Point& b, bool* past_end);
  void Narrow(const Point& tried);
  double NextStep(const Point& tried);
  double Beyond(const Point& tried) const;

  Point best_, other_;  // ends of the interval; before it is found, `other_` is the start
  double start_value_, start_slope_, least_slope_, c2_;
  double step_;
  double low_ = 0, high_;        // for the next step
  double width_, width_before_;  // of the interval, and two steps ago
  bool bracketed_ = false, first_stage_ = true;
};

}  // namespace trainer
