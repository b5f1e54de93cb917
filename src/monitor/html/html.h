#pragma once
// Pieces of a page.

#include <string>
#include <vector>

#include "trainer/monitor/run_metrics.h"

namespace trainer {

// With as many digits as a float has.
std::string Plain(double value);

// On narrow screens a table scrolls sideways; a `stacked` one becomes a list of its cells, each
// with the name of its column.
std::string TableHtml(const std::vector<std::string>& head,
                      const std::vector<std::vector<std::string>>& rows, bool stacked = false);

// `png` in base 64, the caption in lines.
std::string FigureHtml(const std::string& png, const std::vector<std::string>& caption);
// A picture of the run's folder; "" where it is missing.
std::string PictureOfRun(const RunMetrics& run, const char* file, const std::string& caption);

}  // namespace trainer
