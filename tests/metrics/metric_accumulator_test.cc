#include "trainer/metrics/metric_accumulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace trainer {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

Comparison Of(TargetKind kind, int64_t columns, int64_t inner = 1) {
  Comparison comparison;
  comparison.kind = kind;
  comparison.columns = columns;
  comparison.inner = inner;
  return comparison;
}

std::vector<MetricValue> ValuesOf(const Comparison& comparison, MetricAccumulator::Options options,
                                  const std::vector<float>& rows) {
  MetricAccumulator metrics(comparison, std::move(options));
  metrics.Add(rows);
  return metrics.Values();
}

// Each row is a label and three scores. The second is wrong, and the last is not counted.
const std::vector<float> kClassRows = {0, 5, 1, 0, 1, 3, 2, 1, 2, 0, 1, 4, NAN, 9, 9, 9};

TEST(MetricAccumulatorTest, HandValuesOfClasses) {
  const std::vector<MetricValue> values =
      ValuesOf(Of(TargetKind::kClasses, 3),
               {.names = {"accuracy", "top_2", "macro_f1", "auc"}, .intervals = true}, kClassRows);
  ASSERT_THAT(values, SizeIs(4));
  EXPECT_EQ(values[0].name, "accuracy");
  EXPECT_NEAR(values[0].value, 2.0 / 3, 1e-12);
  EXPECT_NEAR(values[0].interval->low, 0.207655, 1e-5);
  EXPECT_NEAR(values[0].interval->high, 0.938510, 1e-5);
  EXPECT_THAT(values[0].each, IsEmpty());
  EXPECT_EQ(values[1].value, 1);
  EXPECT_NEAR(values[2].value, (2.0 / 3 + 0 + 1) / 3, 1e-12);
  EXPECT_THAT(values[2].each, ElementsAre(DoubleNear(2.0 / 3, 1e-12), 0, 1));
  EXPECT_EQ(values[3].value, 1) << "each class has its highest probability in its own record";
  ASSERT_TRUE(values[2].interval);
  EXPECT_LE(values[2].interval->low, values[2].value);
  EXPECT_GE(values[2].interval->high, values[2].value);
}

// Each of the three records has two targets and two logits.
TEST(MetricAccumulatorTest, HandValuesOfSeveralLabels) {
  const std::vector<float> rows = {1, 0, 2, -1, 0, 1, 1, -3, 1, NAN, -1, 7};
  const std::vector<MetricValue> values =
      ValuesOf(Of(TargetKind::kLabels, 2), {.names = {"accuracy", "f1", "auc", "brier"}}, rows);
  EXPECT_THAT(values[0].each, ElementsAre(DoubleNear(1.0 / 3, 1e-12), 0.5));
  EXPECT_NEAR(values[0].value, (1.0 / 3 + 0.5) / 2, 1e-12);
  EXPECT_THAT(values[1].each, ElementsAre(0.5, 0));
  EXPECT_THAT(values[2].each, ElementsAre(0.5, 0));
  const auto brier = [](double logit, double target) {
    return std::pow(1 / (1 + std::exp(-logit)) - target, 2);
  };
  EXPECT_NEAR(values[3].each[0], (brier(2, 1) + brier(1, 0) + brier(-1, 1)) / 3, 1e-6);
  EXPECT_FALSE(values[0].interval) << "not asked for";
}

TEST(MetricAccumulatorTest, ALogitOf1IsNoProbability) {
  const std::vector<MetricValue> values =
      ValuesOf(Of(TargetKind::kLabels, 1), {.names = {"brier"}}, {1, 1, 0, 1});
  const double p = 1 / (1 + std::exp(-1.0));
  EXPECT_NEAR(values[0].value, ((1 - p) * (1 - p) + p * p) / 2, 1e-6);
}

TEST(MetricAccumulatorTest, HandValuesOfNumbers) {
  const std::vector<float> rows = {3, 1, 2.5f, 1, -0.5f, 2, 0, 2, 2, 3, 2, 3, 7, 4, 8, 5};
  const std::vector<MetricValue> values = ValuesOf(
      Of(TargetKind::kNumbers, 2), {.names = {"mae", "rmse", "r2"}, .intervals = true}, rows);
  EXPECT_THAT(values[0].each, ElementsAre(0.5, 0.25));
  EXPECT_NEAR(values[0].value, 0.375, 1e-12);
  EXPECT_NEAR(values[1].value, (std::sqrt(0.375) + 0.5) / 2, 1e-12);
  EXPECT_NEAR(values[2].value, (1 - 1.5 / 29.1875 + 1 - 1.0 / 5) / 2, 1e-12);
  EXPECT_TRUE(values[0].interval);
}

TEST(MetricAccumulatorTest, BatchesDoNotMatter) {
  const Comparison comparison = Of(TargetKind::kClasses, 3);
  const MetricAccumulator::Options options{.names = {"macro_f1", "auc", "ece"}, .intervals = true};
  MetricAccumulator one(comparison, options), four(comparison, options);
  one.Add(kClassRows);
  for (size_t at = 0; at < kClassRows.size(); at += 4) {
    four.Add(std::span(kClassRows).subspan(at, 4));
  }
  for (size_t m = 0; m < 3; ++m) {
    EXPECT_EQ(one.Values()[m].value, four.Values()[m].value);
    EXPECT_EQ(one.Values()[m].interval->low, four.Values()[m].interval->low);
  }
}

TEST(MetricAccumulatorTest, PlacesOfOneRecordHaveNoInterval) {
  const std::vector<MetricValue> values =
      ValuesOf(Of(TargetKind::kClasses, 3, 2),
               {.names = {"accuracy", "macro_f1"}, .intervals = true}, kClassRows);
  EXPECT_FALSE(values[0].interval);
  EXPECT_FALSE(values[1].interval);
}

// With 400 records the AUC's interval has the width of Hanley and McNeil's formula.
TEST(MetricAccumulatorTest, TheIntervalOfTheAucIsAboutAsWideAsExpected) {
  std::vector<float> rows;
  for (int i = 0; i < 400; ++i) {
    const bool positive = i % 2 == 0;
    const float noise = static_cast<float>(i * 7919 % 401) / 401;
    rows.insert(rows.end(), {positive ? 1.0f : 0.0f, 0.0f, noise + (positive ? 0.3f : 0.0f)});
  }
  const MetricValue auc =
      ValuesOf(Of(TargetKind::kClasses, 2), {.names = {"auc"}, .intervals = true}, rows)[0];
  const double a = auc.value, q1 = a / (2 - a), q2 = 2 * a * a / (1 + a), n = 200;
  const double deviation =
      std::sqrt((a * (1 - a) + (n - 1) * (q1 - a * a) + (n - 1) * (q2 - a * a)) / (n * n));
  EXPECT_GT(a, 0.7);
  EXPECT_LT(a, 0.9);
  EXPECT_NEAR(auc.interval->high - auc.interval->low, 2 * 1.96 * deviation, 0.3 * deviation * 4);
}

TEST(MetricAccumulatorTest, CurvesAreThoseOfTheClassesWithTheLowestAuc) {
  MetricAccumulator metrics(Of(TargetKind::kClasses, 3), {.names = {"accuracy"}, .curves = true});
  metrics.Add(kClassRows);
  metrics.Add(std::vector<float>{1, 6, 0, 0});
  const MetricCurves curves = metrics.MakeCurves(2);
  ASSERT_THAT(curves.ranks, SizeIs(2));
  EXPECT_EQ(curves.ranks[0].column, 0);
  EXPECT_EQ(curves.ranks[1].column, 1);
  EXPECT_LT(curves.ranks[0].auc, 1);
  EXPECT_FALSE(curves.ranks[0].roc.empty());
  EXPECT_FALSE(curves.reliability.empty());
}

}  // namespace
}  // namespace trainer
