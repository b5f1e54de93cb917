#pragma once
// One page about runs, for a browser.

#include <string>
#include <vector>

#include "trainer/report/history.h"

namespace trainer {

// A whole HTML file that needs nothing else: a table of the runs, the settings in which they
// differ, their curves over each other, and of each run with a folder its environment, first
// filters and images, and what was put there of `trainer time --json` (time.json) and
// `trainer test --confusion --json` (confusion.json).
std::string ReportPage(const std::vector<RunHistory>& runs);

}  // namespace trainer
