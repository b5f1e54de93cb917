#include "number_sums.h"

#include <cmath>
#include <limits>
#include <utility>

namespace trainer {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

double MeanAbsoluteError(const NumberSums& sums) {
  return sums.weight == 0 ? kNoNumber : sums.absolute / sums.weight;
}

double MeanSquaredError(const NumberSums& sums) {
  return sums.weight == 0 ? kNoNumber : sums.squares / sums.weight;
}

double RootMeanSquaredError(const NumberSums& sums) { return std::sqrt(MeanSquaredError(sums)); }

// The coefficient of determination. As in scikit-learn, targets that are all equal give 1 if every
// output is right, else 0.
double Determination(const NumberSums& sums) {
  if (sums.weight < 2) return kNoNumber;
  if (sums.spread == 0) return sums.squares == 0 ? 1 : 0;
  return 1 - sums.squares / sums.spread;
}

constexpr std::pair<std::string_view, NumberMetric> kNumberMetrics[] = {
    {"mae", MeanAbsoluteError},
    {"mse", MeanSquaredError},
    {"rmse", RootMeanSquaredError},
    {"r2", Determination}};

}  // namespace

void NumberSums::Add(double target, double output, double of_record) {
  if (of_record == 0) return;
  const double error = output - target;
  absolute += of_record * std::abs(error);
  squares += of_record * error * error;
  weight += of_record;
  const double off = target - mean;
  mean += off * of_record / weight;
  spread += of_record * off * (target - mean);
}

NumberMetric FindNumberMetric(std::string_view name) {
  for (const auto& [own, metric] : kNumberMetrics) {
    if (own == name) return metric;
  }
  return nullptr;
}

}  // namespace trainer
