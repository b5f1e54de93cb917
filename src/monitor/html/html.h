#pragma once
// Pieces of a page.

#include <string>
#include <vector>

#include "trainer/monitor/run_metrics.h"

namespace trainer {

// Returns the number with as many digits as a float has.
std::string Plain(double value);

// Returns a page that loads no other file: the style of tables, figures and charts, `title` as the
// heading, and `body`.
std::string PageHtml(const std::string& title, const std::string& body);

// Returns a table; cells are escaped. On narrow screens it scrolls sideways; a `stacked` one
// becomes a list of its cells, each with the name of its column.
std::string TableHtml(const std::vector<std::string>& head,
                      const std::vector<std::vector<std::string>>& rows, bool stacked = false);

// Returns a figure that contains its image. `png` is in base 64; each text of the caption is a
// line.
std::string FigureHtml(const std::string& png, const std::vector<std::string>& caption);
// Returns a figure with a PNG file of the run's folder; "" if it is missing or not a PNG.
std::string PictureOfRun(const RunMetrics& run, const char* file, const std::string& caption);

}  // namespace trainer
