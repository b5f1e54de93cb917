#include "line_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace trainer {
namespace {

constexpr double kLongest = 1e10;
constexpr double kReach = 4;  // how far a step may go beyond the last one, as a factor
constexpr double kLeastReach = 1.1;
constexpr double kShrink = 0.66;  // the interval must shrink to this fraction in two steps
constexpr double kNarrow = 0.1;   // relative width at which the interval is small enough

// Returns the step at which the line through the slopes at a and b is zero (secant method).
template <class Point>
double SecantRoot(const Point& a, const Point& b) {
  return b.step + b.slope / (b.slope - a.slope) * (a.step - b.step);
}

// Returns the minimum of the parabola through the values at a and b with the slope at a.
template <class Point>
double ParabolaMinimum(const Point& a, const Point& b) {
  const double chord = (a.value - b.value) / (b.step - a.step);
  return a.step + a.slope / (chord + a.slope) / 2 * (b.step - a.step);
}

}  // namespace

// Returns the minimum of the cubic with the values and slopes at a and b. *past_end: whether the
// cubic has no minimum beyond b in the direction from a to b.
double LineSearch::CubicMinimum(const Point& a, const Point& b, bool* past_end) {
  const double theta = 3 * (a.value - b.value) / (b.step - a.step) + a.slope + b.slope;
  const double size = std::max({std::fabs(theta), std::fabs(a.slope), std::fabs(b.slope)});
  const double square = theta / size * (theta / size) - a.slope / size * (b.slope / size);
  double gamma = size * std::sqrt(std::max(0.0, square));
  if (b.step > a.step) gamma = -gamma;
  const double part = (gamma - b.slope + theta) / (gamma - b.slope + gamma + a.slope);
  *past_end = !(part < 0 && gamma != 0);
  return b.step + part * (a.step - b.step);
}

LineSearch::LineSearch(double value, double slope, double first, double c1, double c2)
    : best_{0, value, slope},
      other_(best_),
      start_value_(value),
      start_slope_(slope),
      least_slope_(c1 * slope),
      c2_(c2),
      step_(std::min(first, kLongest)),
      high_(step_ + kReach * step_),
      width_(kLongest),
      width_before_(2 * kLongest) {}

LineSearch::Outcome LineSearch::Add(double value, double slope) {
  if (!std::isfinite(value) || !std::isfinite(slope)) {  // far outside: go half way back
    high_ = step_;
    step_ = best_.step + 0.5 * (step_ - best_.step);
    return Outcome::kGoOn;
  }
  const double wanted = start_value_ + step_ * least_slope_;
  const bool falls = value <= wanted;
  if (first_stage_ && falls && slope >= 0) first_stage_ = false;
  if (falls && std::fabs(slope) <= c2_ * -start_slope_) return Outcome::kFound;
  const bool at_end = bracketed_ && (step_ <= low_ || step_ >= high_);
  const bool narrow = bracketed_ && high_ - low_ <= kNarrow * high_;
  const bool farthest = step_ == kLongest && falls && slope <= least_slope_;
  if (at_end || narrow || farthest) return Outcome::kEnough;
  Point tried{step_, value, slope};
  if (first_stage_ && value <= best_.value && !falls) {
    // Until a step falls enough, the method minimises f(t) - c1 t f'(0) instead of f(t).
    const auto tilt = [&](Point& point, double sign) {
      point.value -= sign * point.step * least_slope_;
      point.slope -= sign * least_slope_;
    };
    for (Point* point : {&best_, &other_, &tried}) tilt(*point, 1);
    NarrowInterval(tried);
    for (Point* point : {&best_, &other_}) tilt(*point, -1);
  } else {
    NarrowInterval(tried);
  }
  return Outcome::kGoOn;
}

// Chooses the next step and updates the interval: the paper's "updating algorithm" (section 2) and
// the bisection that enforces its shrinking.
void LineSearch::NarrowInterval(const Point& tried) {
  double next = NextStep(tried);
  if (!std::isfinite(next)) next = tried.step;  // all values and slopes are equal
  if (tried.value > best_.value) {
    other_ = tried;
  } else {
    if (tried.slope * best_.slope < 0) other_ = best_;
    best_ = tried;
  }
  if (bracketed_) {
    const double width = std::fabs(other_.step - best_.step);
    if (width >= kShrink * width_before_) next = best_.step + 0.5 * (other_.step - best_.step);
    width_before_ = std::exchange(width_, width);
    low_ = std::min(best_.step, other_.step);
    high_ = std::max(best_.step, other_.step);
  } else {
    low_ = next + kLeastReach * (next - best_.step);
    high_ = next + kReach * (next - best_.step);
  }
  step_ = std::clamp(next, 0.0, kLongest);
  const bool at_end = step_ <= low_ || step_ >= high_;
  if (bracketed_ && (at_end || high_ - low_ <= kNarrow * high_)) step_ = best_.step;
}

// Returns the next step to try: the four cases of the paper's section 4, by the value and the slope
// of the tried point in comparison with the best one.
double LineSearch::NextStep(const Point& tried) {
  bool unused;
  if (tried.value > best_.value) {  // the minimum is between the two
    bracketed_ = true;
    const double cubic = CubicMinimum(tried, best_, &unused),
                 parabola = ParabolaMinimum(best_, tried);
    const bool nearer = std::fabs(cubic - best_.step) < std::fabs(parabola - best_.step);
    return nearer ? cubic : cubic + (parabola - cubic) / 2;
  }
  if (tried.slope * best_.slope < 0) {  // the minimum is between the two here as well
    bracketed_ = true;
    const double cubic = CubicMinimum(best_, tried, &unused), secant = SecantRoot(best_, tried);
    return std::fabs(cubic - tried.step) > std::fabs(secant - tried.step) ? cubic : secant;
  }
  if (std::fabs(tried.slope) < std::fabs(best_.slope)) return StepBeyond(tried);
  if (bracketed_) return CubicMinimum(other_, tried, &unused);
  return tried.step > best_.step ? high_ : low_;
}

// Case 3: the tried point is lower, and less steep in the same direction. The minimum is beyond it,
// or the cubic has none.
double LineSearch::StepBeyond(const Point& tried) const {
  bool none;
  double cubic = CubicMinimum(best_, tried, &none);
  if (none) cubic = tried.step > best_.step ? high_ : low_;
  const double secant = SecantRoot(best_, tried);
  const bool cubic_nearer = std::fabs(cubic - tried.step) < std::fabs(secant - tried.step);
  if (!bracketed_) {
    const bool farther = std::fabs(cubic - tried.step) > std::fabs(secant - tried.step);
    return std::clamp(farther ? cubic : secant, low_, high_);
  }
  const double next = cubic_nearer ? cubic : secant;
  const double most = tried.step + kShrink * (other_.step - tried.step);
  return tried.step > best_.step ? std::min(most, next) : std::max(most, next);
}

}  // namespace trainer
