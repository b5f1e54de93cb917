#pragma once
// What a run's net answered in a test, as parts of a page; "" where its folder has none of it.

#include <string>

#include "trainer/monitor/history.h"

namespace trainer {

// The classes, which were taken for which, and the most frequent mistakes.
std::string ConfusionHtml(const RunHistory& run);
// The images with the highest loss.
std::string WorstHtml(const RunHistory& run);

}  // namespace trainer
