#pragma once
// The charts of training runs.

#include <string>
#include <vector>

#include "trainer/monitor/chart.h"
#include "trainer/monitor/run_metrics.h"

namespace trainer {

// Returns the charts of the runs: losses, outputs of tests and training, learning rates, speed,
// time spent waiting. Curves of several runs carry the runs' names. Charts without a point are left
// out.
std::vector<Chart> RunCharts(const std::vector<RunMetrics>& runs);

// Returns the name of a run's folder or log, for a legend.
std::string NameOf(const RunMetrics& run);

}  // namespace trainer
