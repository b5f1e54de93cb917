#include "evaluate/metric_report.h"

#include <cmath>

#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr size_t kMostColumns = 50;  // labels or numbers with a row of their own

// Returns a number that depends on the unit of the targets with six digits, others with four
// decimals.
std::string ValueText(double value, TargetKind kind) {
  if (std::isnan(value)) return "-";
  return kind == TargetKind::kNumbers ? Join(value) : Fixed(value, 4);
}

std::string IntervalText(const MetricValue& metric, TargetKind kind) {
  if (!metric.interval) return "-";
  return Join(ValueText(metric.interval->low, kind), " to ",
              ValueText(metric.interval->high, kind));
}

const char* ColumnWord(TargetKind kind) {
  if (kind == TargetKind::kClasses) return "class";
  return kind == TargetKind::kLabels ? "label" : "number";
}

std::string ColumnName(size_t column, const std::vector<std::string>& names) {
  return column < names.size() ? EscapeControl(names[column]) : Join(column);
}

// Returns a row for each label or number with its metrics.
std::string ColumnTable(const EvaluatedMetrics& metrics, const std::vector<std::string>& names) {
  std::vector<std::string> head = {ColumnWord(metrics.kind)};
  for (const MetricValue& metric : metrics.values) head.push_back(metric.name);
  Table table(head);
  for (size_t column = 0; column < metrics.columns; ++column) {
    std::vector<std::string> row = {ColumnName(column, names)};
    for (const MetricValue& metric : metrics.values) {
      row.push_back(ValueText(metric.each[column], metrics.kind));
    }
    table.Add(row);
  }
  return table.ToString();
}

Json PointsJson(const std::vector<CurvePoint>& points) {
  Json list = Json::Array();
  for (const CurvePoint& point : points) {
    list.Push(Json::Array().Push(static_cast<float>(point.x)).Push(static_cast<float>(point.y)));
  }
  return list;
}

}  // namespace

std::string ToText(const EvaluatedMetrics& metrics, const std::vector<std::string>& names) {
  const bool has_means = metrics.kind != TargetKind::kClasses && metrics.columns > 1;
  Table table({"metric", has_means ? "mean" : "value", "95 % interval"});
  for (const MetricValue& metric : metrics.values) {
    table.Add(
        {metric.name, ValueText(metric.value, metrics.kind), IntervalText(metric, metrics.kind)});
  }
  std::string text = table.ToString();
  if (has_means && metrics.columns <= kMostColumns) text += "\n" + ColumnTable(metrics, names);
  return text;
}

Json ToJson(const EvaluatedMetrics& metrics) {
  Json list = Json::Array();
  for (const MetricValue& metric : metrics.values) {
    Json json = Json::Object().Set("name", metric.name).Set("value", metric.value);
    if (metric.interval) {
      json.Set("low", metric.interval->low).Set("high", metric.interval->high);
    }
    if (!metric.each.empty()) {
      Json each = Json::Array();
      for (const double value : metric.each) each.Push(value);
      json.Set("each", std::move(each));
    }
    list.Push(std::move(json));
  }
  return list;
}

Json CurvesJson(const EvaluatedMetrics& metrics, const std::vector<std::string>& names) {
  Json curves = Json::Array();
  for (const RankCurves& one : metrics.curves.ranks) {
    curves.Push(Json::Object()
                    .Set("name", ColumnName(static_cast<size_t>(one.column), names))
                    .Set("auc", one.auc)
                    .Set("ap", one.ap)
                    .Set("roc", PointsJson(one.roc))
                    .Set("precision_recall", PointsJson(one.precision_recall)));
  }
  return Json::Object()
      .Set("of", ColumnWord(metrics.kind))
      .Set("columns", metrics.columns)
      .Set("metrics", ToJson(metrics))
      .Set("curves", std::move(curves))
      .Set("reliability", PointsJson(metrics.curves.reliability));
}

}  // namespace trainer
