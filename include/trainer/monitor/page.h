#pragma once
// The HTML page about one or several runs.

#include <optional>
#include <string>
#include <vector>

#include "trainer/monitor/run_metrics.h"

namespace trainer {

// The net that a run trained, as the page shows it.
struct ReportedNet {
  std::string svg;         // a drawing; "": none
  size_t boxes = 0;        // in the drawing
  std::string parameters;  // their number, "431,080"; "": unknown
};

// A table of a sweep above those of its runs.
struct ReportedTable {
  std::string title;
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
};

// Returns an HTML file that loads no other file: cards with the main figures of one run or a table
// of several, the settings in which they differ, charts, and for each run with a folder its card,
// net, settings, environment, first filters and images, and the results that `trainer time --json`
// and `trainer test --run` left in the folder. `nets` has the net of each run, or is empty;
// `tables` come first. With `carbon`, grams of CO2 per kWh, the card also has the CO2 of the run's
// energy.
std::string ReportPage(const std::vector<RunMetrics>& runs,
                       const std::vector<ReportedNet>& nets = {},
                       const std::vector<ReportedTable>& tables = {},
                       std::optional<double> carbon = std::nullopt);

}  // namespace trainer
