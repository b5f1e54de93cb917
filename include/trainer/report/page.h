#pragma once
// One page about runs, for a browser.

#include <string>
#include <vector>

#include "trainer/report/history.h"

namespace trainer {

// A whole HTML file that needs nothing else: a table of the runs, the settings in which they
// differ, their curves over each other, and of each run with a folder its environment, first
// filters and images, and what was put there of `trainer time --json` and by `trainer test --run`.
std::string ReportPage(const std::vector<RunHistory>& runs);

// Bytes as text, for a picture inside of a page or of JSON.
std::string Base64(const std::string& bytes);

}  // namespace trainer
