#pragma once

#include <string>
#include <vector>

#include "trainer/metrics/comparison.h"

namespace trainer {

// Returns the metrics that a test computes if none are named: accuracy, macro F1 and balanced
// accuracy of classes, also top_5 if there are at least ten; accuracy, F1 and balanced accuracy of
// labels; MAE, RMSE and R2 of numbers.
std::vector<std::string> DefaultMetrics(const Comparison& comparison);

// Returns why a metric cannot be computed for the comparison: it is unknown, with the nearest name,
// or belongs to targets of another kind. "" if it can be. `what` describes the comparison.
std::string MetricFault(const std::string& name, const Comparison& comparison,
                        const std::string& what);

// Returns whether this is a metric of numbers, which decides how two named blobs are compared.
bool IsNumberMetric(const std::string& name);

// A metric's name in parts.
struct MetricName {
  std::string text, base;  // "top_5", "top_"; for others both are the name
  int k = 0;               // 5
  bool ranks = false;      // auc, ap: needs the scores of all records
};
MetricName ParseMetricName(const std::string& text);

}  // namespace trainer
