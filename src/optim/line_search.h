#pragma once

namespace trainer {

// Finds a step t > 0 along a descent direction that meets the strong Wolfe conditions
//   f(t) <= f(0) + c1 t f'(0)    and    |f'(t)| <= c2 |f'(0)|,
// where f(t) is the value and f'(t) the slope, by the method of More and Thuente, ACM Transactions
// on Mathematical Software 20, 1994: it shrinks an interval that contains such a step by cubic and
// quadratic interpolation.
class LineSearch {
 public:
  // `value` and `slope` are f(0) and f'(0), and the slope must be negative. The step `first` is
  // tried first. 0 < c1 < c2 < 1 are the constants of the Wolfe conditions.
  LineSearch(double value, double slope, double first, double c1, double c2);

  // Returns the step to evaluate next or, after kFound and kEnough, the one found.
  double step() const { return step_; }

  enum class Outcome {
    kGoOn,   // evaluate f at step() next
    kFound,  // the step passed to Add meets both conditions
    kEnough  // it does not, but rounding prevents a smaller interval
  };
  // Takes f and f' at step(), and chooses the next step. Values that are not finite count as too
  // far: the next step is half way back.
  Outcome Add(double value, double slope);

 private:
  struct Point {
    double step = 0, value = 0, slope = 0;
  };
  static double CubicMinimum(const Point& a, const Point& b, bool* past_end);
  void NarrowInterval(const Point& tried);
  double NextStep(const Point& tried);
  double StepBeyond(const Point& tried) const;

  Point best_, other_;  // ends of the interval; before it is found, `other_` is the start
  double start_value_, start_slope_, least_slope_, c2_;
  double step_;
  double low_ = 0, high_;        // bounds of the next step
  double width_, width_before_;  // of the interval: now, and two steps ago
  bool bracketed_ = false, first_stage_ = true;
};

}  // namespace trainer
