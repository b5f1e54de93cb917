#pragma once

#include <string>

#include "trainer/monitor/run_metrics.h"

namespace trainer {

// Returns a table of the metrics in curves.json and charts of its curves: ROC, precision and
// recall, reliability. "" if the run's folder has no such file.
std::string MetricsHtml(const RunMetrics& run);

}  // namespace trainer
