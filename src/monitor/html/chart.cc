#include "trainer/monitor/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr double kWidth = 640, kHeight = 300;
constexpr double kLeft = 64, kRight = 20, kTop = 34, kBottom = 40;
constexpr int kColors = 8;

// Returns the number with at most six significant digits, for labels.
std::string Short(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

// Returns a coordinate of the drawing with one decimal.
std::string Pixel(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

// Maps numbers from `low` to `high` to pixels from `begin` to `end`.
struct Axis {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  double begin = 0, end = 1;
  double largest = 0;  // of all values, where the axis ends below some
  bool logarithmic = false;

  // Extends the range of the axis to the value.
  void Take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  double Scale(double value) const { return logarithmic ? std::log10(value) : value; }
  // Returns the pixel of a value. A value above `high` gets the end of the axis.
  double At(double value) const {
    const double span = Scale(high) - Scale(low);
    const double share = span > 0 ? std::min((Scale(value) - Scale(low)) / span, 1.0) : 0.5;
    return begin + share * (end - begin);
  }
};

// Returns the labelled numbers of an axis: about five steps of 1, 2 or 5 times a power of ten. A
// logarithmic axis has powers of ten, and 2 and 5 times them if it spans at most two of them.
std::vector<double> Ticks(const Axis& axis) {
  std::vector<double> ticks;
  if (axis.logarithmic) {
    const int first = static_cast<int>(std::floor(std::log10(axis.low)));
    const int last = static_cast<int>(std::ceil(std::log10(axis.high)));
    const int step = std::max(1, (last - first) / 6);
    for (int power = first; power <= last; power += step) {
      for (const double factor : {1.0, 2.0, 5.0}) {
        if (factor != 1 && last - first > 2) continue;
        const double tick = factor * std::pow(10, power);
        if (tick >= axis.low && tick <= axis.high) ticks.push_back(tick);
      }
    }
    return ticks;
  }
  const double span = axis.high - axis.low;
  if (!(span > 0)) return {axis.low};
  const double rough = span / 5, power = std::pow(10, std::floor(std::log10(rough)));
  const double factor = rough / power;
  const double step = power * (factor < 1.5 ? 1 : factor < 3.5 ? 2 : factor < 7.5 ? 5 : 10);
  for (double i = std::ceil(axis.low / step - 1e-9); i * step <= axis.high + 1e-9 * step; ++i) {
    ticks.push_back(i * step + 0.0);  // not -0
  }
  return ticks;
}

// Ends the axis just above the usual values if the largest ones, at most about one in 30, would
// make its range more than three times as long and so flatten the curves. Sets `y->largest` then.
void LeaveOutOutliers(const Chart& chart, Axis* y) {
  std::vector<double> values;
  for (const ChartSeries& series : chart.series) {
    for (const MetricPoint& point : series.points) values.push_back(point.value);
  }
  std::ranges::sort(values);
  constexpr size_t kFewest = 5, kOneIn = 30;
  if (values.size() < kFewest) return;
  const double usual = values[values.size() - 2 - values.size() / kOneIn];
  const double range = y->Scale(usual) - y->Scale(y->low);
  if (!(range > 0) || y->Scale(y->high) - y->Scale(y->low) < 3 * range) return;
  y->largest = y->high;
  y->high = y->logarithmic ? usual * std::pow(10, range / 10) : usual + range / 10;
}

// Returns the exponential running mean of points, without a bias to the first one. It averages over
// about a twentieth of the points.
std::vector<MetricPoint> Smoothed(const std::vector<MetricPoint>& points) {
  const double keep = 1 - std::min(1.0, 20 / static_cast<double>(points.size()));
  std::vector<MetricPoint> means;
  double sum = 0, weight = 0;
  for (const MetricPoint& point : points) {
    sum = keep * sum + point.value;
    weight = keep * weight + 1;
    means.push_back({point.iter, sum / weight});
  }
  return means;
}

// Returns at most about a thousand points: the lowest and the highest of each group of neighbours,
// so that spikes remain visible.
std::vector<MetricPoint> Thinned(const std::vector<MetricPoint>& points) {
  constexpr size_t kMost = 1000;
  if (points.size() <= kMost) return points;
  const size_t each = (points.size() + kMost / 2 - 1) / (kMost / 2);
  std::vector<MetricPoint> thinned;
  for (size_t at = 0; at < points.size(); at += each) {
    const auto from = points.begin() + static_cast<std::ptrdiff_t>(at);
    const auto to =
        points.begin() + static_cast<std::ptrdiff_t>(std::min(at + each, points.size()));
    auto [low, high] = std::minmax_element(
        from, to, [](const auto& a, const auto& b) { return a.value < b.value; });
    if (high < low) std::swap(low, high);
    thinned.push_back(*low);
    if (low != high) thinned.push_back(*high);
  }
  return thinned;
}

// Returns a text element. `kind` is a list of classes that ChartStyle defines.
std::string TextAt(double x, double y, const char* kind, const std::string& text) {
  return Join("<text class=\"", kind, "\" x=\"", Pixel(x), "\" y=\"", Pixel(y), "\">",
              EscapeHtml(text), "</text>\n");
}

// Draws the grid lines of the y axis, the line of the x axis, and the labels of both.
std::string AxesSvg(const Axis& x, const Axis& y, const std::string& x_label) {
  std::string svg;
  for (const double tick : Ticks(y)) {
    const double at = y.At(tick);
    svg += Join("<line class=\"grid\" x1=\"", kLeft, "\" x2=\"", kWidth - kRight, "\" y1=\"",
                Pixel(at), "\" y2=\"", Pixel(at), "\"/>\n");
    svg += TextAt(kLeft - 6, at + 4, "tick end", Short(tick));
  }
  for (const double tick : Ticks(x)) {
    svg += TextAt(x.At(tick), kHeight - kBottom + 16, "tick middle", Short(tick));
  }
  svg += Join("<line class=\"axis\" x1=\"", kLeft, "\" x2=\"", kWidth - kRight, "\" y1=\"",
              kHeight - kBottom, "\" y2=\"", kHeight - kBottom, "\"/>\n");
  return svg + TextAt((kLeft + kWidth - kRight) / 2, kHeight - 6, "tick middle", x_label);
}

// Returns the names of the series in a row above the curves, from the right. Names that do not fit
// are left out; the tooltips of the curves have them.
std::string LegendSvg(const Chart& chart) {
  constexpr double kLetter = 8;  // of the larger type on narrow pages
  std::string svg;
  double x = kWidth - kRight;
  for (auto series = chart.series.rbegin(); series != chart.series.rend(); ++series) {
    if (series->name.empty() || series->points.empty()) continue;
    const double width = kLetter * static_cast<double>(series->name.size()) + 22;
    if (x - width < kLeft + 9 * static_cast<double>(chart.title.size())) break;
    x -= width;
    svg += Join("<line class=\"curve c", series->color % kColors, series->dashed ? " dashed" : "",
                "\" x1=\"", Pixel(x), "\" x2=\"", Pixel(x + 14), "\" y1=\"16\" y2=\"16\"/>\n");
    svg += TextAt(x + 18, 20, "tick", series->name);
  }
  return svg;
}

// Draws a series. A smoothed one of many points is drawn twice: the points faintly, their running
// mean over them. A series of few points has a dot for each.
std::string CurveSvg(const ChartSeries& series, const Axis& x, const Axis& y) {
  constexpr size_t kFew = 60;
  if (series.smoothed && series.points.size() > kFew) {
    ChartSeries pale = series, mean = series;
    pale.smoothed = mean.smoothed = false;
    mean.points = Smoothed(series.points);
    return "<g class=\"pale\">" + CurveSvg(pale, x, y) + "</g>\n" + CurveSvg(mean, x, y);
  }
  if (series.pale) {
    ChartSeries pale = series;
    pale.pale = false;
    return "<g class=\"pale\">" + CurveSvg(pale, x, y) + "</g>\n";
  }
  const std::vector<MetricPoint> points = Thinned(series.points);
  std::string path;
  for (const MetricPoint& point : points) {
    path += Join(path.empty() ? "" : " ", Pixel(x.At(point.iter)), ",", Pixel(y.At(point.value)));
  }
  const std::string title = Join("<title>", EscapeHtml(series.name), ", last ",
                                 Short(series.points.back().value), "</title>");
  const std::string kind =
      Join("class=\"curve c", series.color % kColors, series.dashed ? " dashed\"" : "\"");
  std::string svg = Join("<polyline ", kind, " points=\"", path, "\">", title, "</polyline>\n");
  if (points.size() > kFew || !series.dots) return svg;
  for (const MetricPoint& point : points) {
    svg +=
        Join("<circle class=\"dot c", series.color % kColors, "\" cx=\"", Pixel(x.At(point.iter)),
             "\" cy=\"", Pixel(y.At(point.value)), "\" r=\"2.5\"><title>", EscapeHtml(series.name),
             " ", Short(point.iter), ": ", Short(point.value), "</title></circle>\n");
  }
  return svg;
}

constexpr std::array<const char*, kColors> kLight = {"#1f6fb4", "#d2571c", "#2e8540", "#8a4fbf",
                                                     "#b3261e", "#0b7f86", "#8a6d00", "#c2408f"};
constexpr std::array<const char*, kColors> kDark = {"#6db3f2", "#ff9a5c", "#6fcf7f", "#c39bf0",
                                                    "#ff8a80", "#4fd1d9", "#e0c04a", "#f58fcb"};

// Returns the CSS variables of a palette: the colours of curves, text (`ink`) and lines (`faint`).
std::string ColorStyles(const std::array<const char*, kColors>& colors, const std::string& ink,
                        const std::string& faint) {
  std::string css = Join("--ink:", ink, ";--faint:", faint, ";");
  for (size_t i = 0; i < colors.size(); ++i) css += Join("--c", i, ":", colors[i], ";");
  return ":root{" + css + "}";
}

}  // namespace

std::string EscapeHtml(const std::string& text) {
  std::string out;
  for (const char c : EscapeControl(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string ChartStyle() {
  std::string css = ColorStyles(kLight, "#222", "#ddd") + "@media(prefers-color-scheme:dark){" +
                    ColorStyles(kDark, "#e6e6e6", "#444") + "}\n";
  css +=
      "svg text{fill:var(--ink);font:12px system-ui,sans-serif}"
      "svg .title{font-weight:600;font-size:14px}"
      "svg .end{text-anchor:end}svg .middle{text-anchor:middle}"
      "svg .grid{stroke:var(--faint)}svg .axis{stroke:var(--ink)}"
      "svg .curve{fill:none;stroke-width:1.6;stroke-linejoin:round}"
      "svg .dashed{stroke-dasharray:6 3}svg .pale{opacity:.3}svg .dot{stroke:none}\n";
  for (int i = 0; i < kColors; ++i) {
    css +=
        Join("svg .curve.c", i, "{stroke:var(--c", i, ")}svg .dot.c", i, "{fill:var(--c", i, ")}");
  }
  return css + "\n";
}

std::string ChartSvg(const Chart& chart) {
  Axis x, y;
  for (const ChartSeries& series : chart.series) {
    for (const MetricPoint& point : series.points) {
      x.Take(point.iter);
      y.Take(point.value);
    }
  }
  if (!(x.low <= x.high)) return "";
  y.logarithmic = chart.logarithmic && y.low > 0;
  x.logarithmic = chart.logarithmic_x && x.low > 0;
  if (chart.unit_axes) {
    for (const double end : {0.0, 1.0}) {
      x.Take(end);
      y.Take(end);
    }
  } else {
    LeaveOutOutliers(chart, &y);
  }
  if (chart.highest < y.high && chart.highest > y.low) {
    y.largest = std::max(y.largest, y.high);
    y.high = chart.highest;
  }
  if (chart.from_zero) y.Take(0);
  if (y.low == y.high) {
    const double room = y.low == 0 ? 1 : std::abs(y.low) / 2;
    if (!chart.from_zero) y.Take(y.low - room);
    y.Take(y.high + room);
  }
  x.begin = kLeft;
  x.end = kWidth - kRight;
  y.begin = kHeight - kBottom;
  y.end = kTop;
  std::string svg =
      Join("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", kWidth, " ", kHeight,
           "\" role=\"img\" aria-label=\"", EscapeHtml(chart.title), "\">\n");
  svg += TextAt(8, 20, "title", chart.title) + AxesSvg(x, y, chart.x_label) + LegendSvg(chart);
  if (y.largest > 0) {
    svg += TextAt(kLeft + 6, kTop + 12, "tick", Join("above the axis: up to ", Short(y.largest)));
  }
  for (const ChartSeries& series : chart.series) {
    if (!series.points.empty()) svg += CurveSvg(series, x, y);
  }
  return svg + "</svg>\n";
}

std::string ChartsFile(const std::vector<Chart>& charts) {
  std::string inside;
  double y = 0;
  for (const Chart& chart : charts) {
    std::string svg = ChartSvg(chart);
    if (svg.empty()) continue;
    const std::string place =
        Join("<svg y=\"", y, "\" width=\"", kWidth, "\" height=\"", kHeight, "\"");
    svg.replace(0, std::string("<svg").size(), place);
    inside += svg;
    y += kHeight;
  }
  return Join("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", kWidth, "\" height=\"", y,
              "\" viewBox=\"0 0 ", kWidth, " ", y, "\">\n<style>", ChartStyle(),
              ".page{fill:#fff}@media(prefers-color-scheme:dark){.page{fill:#181a1b}}</style>\n",
              "<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n", inside, "</svg>\n");
}

}  // namespace trainer
