#include "metric_charts.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "history/run_files.h"
#include "html.h"
#include "trainer/base/text/json_reader.h"
#include "trainer/base/text/text.h"
#include "trainer/monitor/chart.h"
#include "trainer/monitor/run_directory.h"

namespace trainer {
namespace {

// Returns the points of a list of pairs. Anything else in the list is left out.
std::vector<MetricPoint> PairsOf(const JsonObject& json, const char* name) {
  std::vector<MetricPoint> points;
  const JsonElement* const list = JsonField(json, name);
  if (list == nullptr) return points;
  for (const JsonElement& pair : list->list_value().values()) {
    const auto& numbers = pair.list_value().values();
    if (numbers.size() != 2) continue;
    points.push_back({numbers[0].number_value(), numbers[1].number_value()});
  }
  return points;
}

// Returns a number with four decimals at most; "-" if it is missing or null.
std::string Rounded(const JsonObject& json, const char* name) {
  const JsonElement* const value = JsonField(json, name);
  if (value == nullptr || !value->has_number_value()) return "-";
  const double number = value->number_value();
  return Plain(std::abs(number) < 1e4 ? std::round(1e4 * number) / 1e4 : number);
}

std::string MetricsTable(const JsonObject& json) {
  std::vector<std::vector<std::string>> rows;
  const JsonElement* const metrics = JsonField(json, "metrics");
  if (metrics == nullptr) return "";
  for (const JsonElement& element : metrics->list_value().values()) {
    const JsonObject& one = element.struct_value();
    const bool has_interval = JsonField(one, "low") != nullptr;
    rows.push_back({JsonText(one, "name"), Rounded(one, "value"),
                    has_interval ? Rounded(one, "low") + " to " + Rounded(one, "high") : "-"});
  }
  if (rows.empty()) return "";
  return "<h3>Metrics</h3>\n" + TableHtml({"metric", "value", "95 % interval"}, rows);
}

Chart UnitChart(const std::string& title, const std::string& x_label) {
  Chart chart;
  chart.title = title;
  chart.x_label = x_label;
  chart.unit_axes = true;
  return chart;
}

// Adds the line from (0, 0) to (1, 1), faintly.
void AddDiagonal(Chart* chart) {
  ChartSeries diagonal;
  diagonal.points = {{0, 0}, {1, 1}};
  diagonal.pale = true;
  diagonal.dashed = true;
  diagonal.dots = false;
  chart->series.push_back(diagonal);
}

// Returns a chart with a curve for each class. `area` is the field with the curve's area.
Chart CurvesChart(const JsonObject& json, Chart chart, const char* curve, const char* area) {
  const JsonElement* const curves = JsonField(json, "curves");
  if (curves == nullptr) return chart;
  const auto& list = curves->list_value().values();
  for (const JsonElement& element : list) {
    const JsonObject& one = element.struct_value();
    ChartSeries series;
    series.name = Join(JsonText(one, "name"), " ", Rounded(one, area));
    if (list.size() == 1) series.name = Rounded(one, area);
    series.points = PairsOf(one, curve);
    series.color = static_cast<int>(chart.series.size());
    series.dots = false;
    chart.series.push_back(series);
  }
  return chart;
}

// Returns a sentence if the charts show only some of the classes.
std::string LeftOut(const JsonObject& json) {
  const JsonElement* const curves = JsonField(json, "curves");
  const double all = JsonNumber(json, "columns");
  const size_t shown = curves == nullptr ? 0 : curves->list_value().values().size();
  if (shown < 2 || static_cast<double>(shown) >= all) return "";
  const std::string of = JsonText(json, "of") == "label" ? "labels" : "classes";
  return Join("<p>The ", shown, " ", of, " with the lowest area under the ROC curve, of ",
              Plain(all), ".</p>\n");
}

}  // namespace

std::string MetricsHtml(const RunMetrics& run) {
  const std::optional<JsonObject> json = JsonOfRun(run, kCurvesName);
  if (!json) return "";
  Chart roc = CurvesChart(*json, UnitChart("ROC", "false positive rate"), "roc", "auc");
  if (!roc.series.empty()) AddDiagonal(&roc);
  const Chart precision =
      CurvesChart(*json, UnitChart("Precision", "recall"), "precision_recall", "ap");
  Chart reliability = UnitChart("Right answers", "confidence");
  ChartSeries bins;
  bins.points = PairsOf(*json, "reliability");
  if (!bins.points.empty()) {
    reliability.series.push_back(bins);
    AddDiagonal(&reliability);
  }
  const std::string charts = ChartSvg(roc) + ChartSvg(precision) + ChartSvg(reliability);
  return MetricsTable(*json) +
         (charts.empty() ? "" : LeftOut(*json) + "<div class=\"charts\">\n" + charts + "</div>\n");
}

}  // namespace trainer
