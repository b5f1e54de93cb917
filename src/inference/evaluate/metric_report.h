#pragma once

#include <string>
#include <vector>

#include "trainer/base/text/json.h"
#include "trainer/inference/evaluate/evaluation.h"

namespace trainer {

// Returns a table of the metrics with their intervals; for several labels or numbers also a table
// with a row for each, if they are few. `names` are those of the classes or labels, or none.
std::string ToText(const EvaluatedMetrics& metrics, const std::vector<std::string>& names);
// Returns all metrics, each with its values by class, label or number.
Json ToJson(const EvaluatedMetrics& metrics);
// Returns the metrics and curves for the page of a run.
Json CurvesJson(const EvaluatedMetrics& metrics, const std::vector<std::string>& names);

}  // namespace trainer
