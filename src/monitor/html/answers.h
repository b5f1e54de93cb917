#pragma once
// The results of `trainer test --run` as parts of a page; "" if the folder has none.

#include <string>

#include "trainer/monitor/run_metrics.h"

namespace trainer {

// Returns the recall and precision of each class, the confusion matrix if the classes are few, and
// the most frequent mistakes.
std::string ConfusionHtml(const RunMetrics& run);
// Returns the images with the highest loss, with their labels and answers.
std::string WorstHtml(const RunMetrics& run);

}  // namespace trainer
