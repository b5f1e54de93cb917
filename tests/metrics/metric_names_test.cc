#include "trainer/metrics/metric_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

Comparison TargetsOf(TargetKind kind, int64_t columns) {
  Comparison comparison;
  comparison.kind = kind;
  comparison.columns = columns;
  return comparison;
}

TEST(MetricNamesTest, TheDefaultSuitsTheTargets) {
  EXPECT_THAT(DefaultMetrics(TargetsOf(TargetKind::kClasses, 9)),
              ElementsAre("accuracy", "macro_f1", "balanced_accuracy"));
  EXPECT_THAT(DefaultMetrics(TargetsOf(TargetKind::kClasses, 10)),
              ElementsAre("accuracy", "top_5", "macro_f1", "balanced_accuracy"));
  EXPECT_THAT(DefaultMetrics(TargetsOf(TargetKind::kLabels, 3)),
              ElementsAre("accuracy", "f1", "balanced_accuracy"));
  EXPECT_THAT(DefaultMetrics(TargetsOf(TargetKind::kNumbers, 1)), ElementsAre("mae", "rmse", "r2"));
  for (const TargetKind kind : {TargetKind::kClasses, TargetKind::kLabels, TargetKind::kNumbers}) {
    for (const std::string& name : DefaultMetrics(TargetsOf(kind, 10))) {
      EXPECT_EQ(MetricFault(name, TargetsOf(kind, 10), "it"), "");
    }
  }
}

TEST(MetricNamesTest, RefusesUnknownNamesAndMetricsOfOtherTargets) {
  const Comparison classes = TargetsOf(TargetKind::kClasses, 3);
  EXPECT_THAT(MetricFault("macro_f", classes, "it"),
              StartsWith("there is no metric 'macro_f'. Did you mean 'macro_f1'? The metrics of "
                         "classes are accuracy, top_5, "));
  EXPECT_THAT(MetricFault("mae", classes, "layer 'loss' (SoftmaxWithLoss)"),
              StartsWith("'mae' is a metric of numbers, but layer 'loss' (SoftmaxWithLoss) "
                         "compares classes, whose metrics are accuracy, "));
  EXPECT_THAT(MetricFault("f1", TargetsOf(TargetKind::kNumbers, 1), "it"),
              StartsWith("'f1' is a metric of classes, but it compares numbers"));
  EXPECT_THAT(MetricFault("weighted_f1", TargetsOf(TargetKind::kLabels, 2), "it"),
              HasSubstr("compares several labels"));
}

TEST(MetricNamesTest, TopKNeedsMoreClasses) {
  const Comparison classes = TargetsOf(TargetKind::kClasses, 3);
  EXPECT_EQ(MetricFault("top_2", classes, "it"), "");
  EXPECT_EQ(MetricFault("top_3", classes, "it"),
            "'top_3' is always 1, because it compares 3 classes; give a smaller number");
  EXPECT_THAT(MetricFault("top_0", classes, "it"), HasSubstr("there is no metric 'top_0'"));
  EXPECT_EQ(ParseMetricName("top_12").k, 12);
  EXPECT_TRUE(ParseMetricName("auc").ranks);
  EXPECT_FALSE(ParseMetricName("mcc").ranks);
}

}  // namespace
}  // namespace trainer
