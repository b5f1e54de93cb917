#include "trainer/metrics/metric_names.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "class_sums.h"
#include "number_sums.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr char kTop[] = "top_";

const std::vector<std::string>& NamesOf(TargetKind kind) {
  static const std::vector<std::string> classes = {"accuracy",
                                                   "top_5",
                                                   "balanced_accuracy",
                                                   "precision",
                                                   "recall",
                                                   "f1",
                                                   "macro_precision",
                                                   "macro_recall",
                                                   "macro_f1",
                                                   "weighted_f1",
                                                   "auc",
                                                   "ap",
                                                   "mcc",
                                                   "kappa",
                                                   "mean_iou",
                                                   "ece",
                                                   "brier",
                                                   "log_loss"};
  static const std::vector<std::string> labels = {"accuracy",     "balanced_accuracy",
                                                  "precision",    "recall",
                                                  "f1",           "macro_precision",
                                                  "macro_recall", "macro_f1",
                                                  "auc",          "ap",
                                                  "mcc",          "kappa",
                                                  "mean_iou",     "ece",
                                                  "brier",        "log_loss"};
  static const std::vector<std::string> numbers = {"mae", "mse", "rmse", "r2"};
  if (kind == TargetKind::kNumbers) return numbers;
  return kind == TargetKind::kClasses ? classes : labels;
}

const char* KindName(TargetKind kind) {
  if (kind == TargetKind::kNumbers) return "numbers";
  return kind == TargetKind::kClasses ? "classes" : "several labels";
}

bool HasName(TargetKind kind, const MetricName& name) {
  const std::string listed = name.base == kTop ? "top_5" : name.text;
  return std::ranges::count(NamesOf(kind), listed) > 0;
}

}  // namespace

std::vector<std::string> DefaultMetrics(const Comparison& comparison) {
  constexpr int64_t kManyClasses = 10;
  if (comparison.kind == TargetKind::kNumbers) return {"mae", "rmse", "r2"};
  if (comparison.kind == TargetKind::kLabels) return {"accuracy", "f1", "balanced_accuracy"};
  if (comparison.columns < kManyClasses) return {"accuracy", "macro_f1", "balanced_accuracy"};
  return {"accuracy", "top_5", "macro_f1", "balanced_accuracy"};
}

std::string MetricFault(const std::string& name, const Comparison& comparison,
                        const std::string& what) {
  const MetricName metric = ParseMetricName(name);
  const std::string listed = JoinList(NamesOf(comparison.kind));
  if (!HasName(comparison.kind, metric)) {
    for (const TargetKind other :
         {TargetKind::kClasses, TargetKind::kLabels, TargetKind::kNumbers}) {
      if (!HasName(other, metric)) continue;
      return Join("'", name, "' is a metric of ", KindName(other), ", but ", what, " compares ",
                  KindName(comparison.kind), ", whose metrics are ", listed);
    }
    return Join("there is no metric '", EscapeControl(name), "'.",
                DidYouMean(name, NamesOf(comparison.kind)), " The metrics of ",
                KindName(comparison.kind), " are ", listed);
  }
  if (metric.base == kTop && metric.k >= comparison.columns) {
    return Join("'", name, "' is always 1, because ", what, " compares ", comparison.columns,
                " classes; give a smaller number");
  }
  return "";
}

bool IsNumberMetric(const std::string& name) { return FindNumberMetric(name) != nullptr; }

MetricName ParseMetricName(const std::string& text) {
  MetricName name{text, text, 0, text == "auc" || text == "ap"};
  if (!text.starts_with(kTop)) return name;
  const std::optional<int> k = ParseNumber<int>(text.substr(sizeof kTop - 1));
  if (!k || *k < 1) return name;
  name.base = kTop;
  name.k = *k;
  return name;
}

}  // namespace trainer
