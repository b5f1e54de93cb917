#include "scaling/straggler_fit.h"

#include <cmath>
#include <numbers>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Returns the images per second of the model on `ranks` ranks.
double PredictedRate(const IterationProfile& profile, ClusterModel cluster,
                     const ScalingOptions& options, int ranks) {
  cluster.ranks = ranks;
  return ranks * profile.images / PredictIteration(profile, cluster, options).seconds;
}

// Returns the root of the falling function `f` between `low` and `high` by bisection, or the nearer
// end if there is none.
template <class F>
double Root(double low, double high, const F& f) {
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (f(middle) > 0 ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

// Integrates x n phi(x) Phi(x)^(n - 1) by the trapezoidal rule.
double ExpectedMax(int count) {
  if (count < 2) return 0;
  constexpr double kStep = 1.0 / 32, kEnd = 10;
  double sum = 0;
  for (double x = -kEnd; x <= kEnd; x += kStep) {
    const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    const double below = std::erfc(-x / std::numbers::sqrt2) / 2;
    sum += x * count * density * std::pow(below, count - 1);
  }
  return sum * kStep;
}

CalibratedProfile CalibrateStragglers(const IterationProfile& profile, const ClusterModel& cluster,
                                      const ScalingOptions& options, const MeasuredRate& first,
                                      const MeasuredRate& second) {
  // The largest factor is the one that gives the first rate without any exchange.
  const double most = first.ranks * profile.images / first.images_per_second / profile.Seconds();
  const auto fitted = [&](double jitter) {
    ScalingOptions with = options;
    with.jitter = jitter;
    const double factor = Root(0, most, [&](double f) {
      return PredictedRate(Scaled(profile, f), cluster, with, first.ranks) -
             first.images_per_second;
    });
    return Scaled(profile, factor);
  };
  const auto over = [&](double jitter) {
    ScalingOptions with = options;
    with.jitter = jitter;
    return PredictedRate(fitted(jitter), cluster, with, second.ranks) - second.images_per_second;
  };
  constexpr double kTolerance = 1e-3;
  const double jitter = Root(0, 1, over);
  const double miss = std::fabs(over(jitter)) / second.images_per_second;
  if (miss > kTolerance) {
    throw Error(
        ErrorCode::kUsage,
        Join("no jitter between 0 and 100 % explains ", second.images_per_second, " images/s on ",
             second.ranks, " ranks after ", first.images_per_second, " on ", first.ranks,
             "; the nearest is off by ", 100 * miss, " %. Try another --link or --ranks_per_node"));
  }
  return {fitted(jitter), jitter};
}

}  // namespace trainer
