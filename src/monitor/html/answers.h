#pragma once
// The results of `trainer test --run` as parts of a page; "" if the folder has none.

#include <string>

#include "trainer/monitor/run_metrics.h"

namespace trainer {

// The classes, which were taken for which, and the most frequent mistakes.
std::string ConfusionHtml(const RunMetrics& run);
// The images with the highest loss.
std::string WorstHtml(const RunMetrics& run);

}  // namespace trainer
