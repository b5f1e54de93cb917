#pragma once
// Sums over records with numbers as targets, from which the metrics of a regression follow.

#include <string_view>

namespace trainer {

// The sums of one output.
struct NumberSums {
  void Add(double target, double output, double weight = 1);

  double weight = 0, absolute = 0, squares = 0;  // of the errors
  // The mean of the targets and their squared distances from it, updated with each record, because
  // the difference of two large sums would lose the digits.
  double mean = 0, spread = 0;
};

// Computes one metric of an output. Not a number where it is not defined.
using NumberMetric = double (*)(const NumberSums& sums);
// Returns mae, mse, rmse or r2; null for other names.
NumberMetric FindNumberMetric(std::string_view name);

}  // namespace trainer
