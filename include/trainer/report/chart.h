#pragma once
// Curves as SVG, without anything but text.

#include <string>
#include <vector>

#include "trainer/report/history.h"

namespace trainer {

struct ChartSeries {
  std::string name;
  std::vector<HistoryPoint> points;  // ascending
  int color = 0;                     // an index into the palette of ChartStyle
};

struct Chart {
  std::string title, x_label = "iteration";
  std::vector<ChartSeries> series;
  bool logarithmic = false;  // where all values are positive
  bool from_zero = false;    // the axis begins at 0
};

// An <svg> element that takes the width of what it is in; "" where no series has a point. It is
// drawn with the classes of ChartStyle.
std::string ChartSvg(const Chart& chart);

// The CSS of charts, for light and dark pages.
std::string ChartStyle();

// A file with charts one below the other.
std::string ChartsFile(const std::vector<Chart>& charts);

// The curves of runs, which are told apart by name where there are several: losses, outputs of
// tests and training, rates, speed, waiting. Those without a point are left out.
std::vector<Chart> ChartsOf(const std::vector<RunHistory>& runs);

// The last part of a run's path that says something, for a legend.
std::string NameOf(const RunHistory& run);

// Text between tags, and in quotes.
std::string EscapeHtml(const std::string& text);

}  // namespace trainer
