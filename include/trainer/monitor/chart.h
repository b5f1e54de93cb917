#pragma once
// Charts as SVG text.

#include <limits>
#include <string>
#include <vector>

#include "trainer/monitor/run_metrics.h"

namespace trainer {

// One curve of a chart.
struct ChartSeries {
  std::string name;
  std::vector<MetricPoint> points;  // ascending
  int color = 0;                    // an index into the palette of ChartStyle
  bool dashed = false;              // tests, next to training in one chart
  bool smoothed = false;            // drawn as a running mean over the pale points
  bool pale = false;                // drawn faintly, as the background of other curves
  bool dots = true;                 // a series of few points has a dot at each
};

// A chart with a common axis for all its series.
struct Chart {
  std::string title, x_label = "iteration";
  std::vector<ChartSeries> series;
  bool logarithmic = false;    // ignored unless all values are positive
  bool logarithmic_x = false;  // the same of the points' `iter`
  bool from_zero = false;      // the axis begins at 0
  bool unit_axes = false;      // both axes go from 0 to 1
  // Values above it are drawn at the end of the axis.
  double highest = std::numeric_limits<double>::infinity();
};

// Returns an <svg> element as wide as its container, or "" if no series has a point. Its classes
// are defined by ChartStyle. A few values far above all others, such as the loss of the first
// iteration, do not stretch the axis: they are drawn at its end, and a line of text says how large
// they are.
std::string ChartSvg(const Chart& chart);

// Returns the CSS of charts, for light and dark pages.
std::string ChartStyle();

// Returns an SVG file with the charts one below the other.
std::string ChartsFile(const std::vector<Chart>& charts);

// Escapes text for the space between tags and for quoted attributes. Control characters become
// visible escapes.
std::string EscapeHtml(const std::string& text);

}  // namespace trainer
