#include "class_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace trainer {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::IsEmpty;

ClassSums SumsOf(int64_t classes, const std::vector<std::pair<int, int>>& labels_and_answers) {
  ClassSums sums(classes);
  for (const auto& [label, answer] : labels_and_answers) {
    sums.Add({.label = label, .predicted = answer, .above = label == answer ? 0 : 1});
  }
  return sums;
}

double MetricOf(const ClassSums& sums, const std::string& name, int k = 0) {
  return FindClassMetric(name)(sums, k);
}

// Each class has 2 labels; 2, 3 and 1 predictions; and 1, 2 and 1 correct ones.
TEST(ClassSumsTest, HandValuesOfThreeClasses) {
  const ClassSums sums = SumsOf(3, {{0, 0}, {0, 1}, {1, 1}, {1, 1}, {2, 2}, {2, 0}});
  EXPECT_NEAR(MetricOf(sums, "accuracy"), 4.0 / 6, 1e-12);
  EXPECT_NEAR(MetricOf(sums, "macro_precision"), (1.0 / 2 + 2.0 / 3 + 1) / 3, 1e-12);
  EXPECT_NEAR(MetricOf(sums, "macro_recall"), (0.5 + 1 + 0.5) / 3, 1e-12);
  EXPECT_NEAR(MetricOf(sums, "balanced_accuracy"), (0.5 + 1 + 0.5) / 3, 1e-12);
  EXPECT_NEAR(MetricOf(sums, "macro_f1"), (0.5 + 0.8 + 2.0 / 3) / 3, 1e-12);
  EXPECT_NEAR(MetricOf(sums, "f1"), MetricOf(sums, "macro_f1"), 1e-12);
  EXPECT_NEAR(MetricOf(sums, "mcc"), 12 / std::sqrt(22.0 * 24), 1e-12);
  EXPECT_NEAR(MetricOf(sums, "kappa"), 0.5, 1e-12);
  EXPECT_NEAR(MetricOf(sums, "mean_iou"), (1.0 / 3 + 2.0 / 3 + 1.0 / 2) / 3, 1e-12);
  EXPECT_NEAR(MetricOf(sums, "top_", 1), 4.0 / 6, 1e-12);
  EXPECT_EQ(MetricOf(sums, "top_", 2), 1);
  EXPECT_THAT(EachClass(sums, "f1"),
              ElementsAre(0.5, DoubleNear(0.8, 1e-12), DoubleNear(2.0 / 3, 1e-12)));
  EXPECT_THAT(EachClass(sums, "mcc"), IsEmpty());
}

TEST(ClassSumsTest, OfTwoClassesF1IsThatOfClass1) {
  const ClassSums sums = SumsOf(2, {{0, 0}, {0, 0}, {0, 1}, {1, 1}});
  EXPECT_NEAR(MetricOf(sums, "precision"), 0.5, 1e-12);
  EXPECT_NEAR(MetricOf(sums, "recall"), 1, 1e-12);
  EXPECT_NEAR(MetricOf(sums, "f1"), 2.0 / 3, 1e-12);
  EXPECT_NEAR(MetricOf(sums, "macro_f1"), (0.8 + 2.0 / 3) / 2, 1e-12);
  EXPECT_NEAR(MetricOf(sums, "weighted_f1"), (3 * 0.8 + 2.0 / 3) / 4, 1e-12);
  EXPECT_NEAR(FindLabelMetric("macro_f1")(sums, 0), 2.0 / 3, 1e-12);
  EXPECT_EQ(FindLabelMetric("weighted_f1"), nullptr);
}

TEST(ClassSumsTest, AClassThatDoesNotOccurDoesNotCount) {
  const ClassSums sums = SumsOf(5, {{0, 0}, {3, 0}});
  EXPECT_NEAR(MetricOf(sums, "macro_f1"), (2.0 / 3 + 0) / 2, 1e-12);
  EXPECT_NEAR(MetricOf(sums, "balanced_accuracy"), 0.5, 1e-12);
  EXPECT_TRUE(std::isnan(EachClass(sums, "recall")[1]));
}

TEST(ClassSumsTest, WithoutRecordsOrWithOneClassMetricsAreNotDefined) {
  for (const char* name : {"accuracy", "f1", "mcc", "kappa", "ece", "brier", "balanced_accuracy"}) {
    EXPECT_TRUE(std::isnan(MetricOf(ClassSums(3), name))) << name;
  }
  const ClassSums one = SumsOf(2, {{1, 1}, {1, 1}});
  EXPECT_TRUE(std::isnan(MetricOf(one, "kappa")));
  EXPECT_EQ(MetricOf(one, "mcc"), 0);
}

TEST(ClassSumsTest, HandValuesOfProbabilities) {
  ClassSums sums(3);
  const std::vector<float> scores = {0.9f, 0.1f, 0.0f};
  const std::vector<double> probabilities = {0.9, 0.1, 0.0};
  for (const int label : {0, 1}) sums.Add(MakeClassRecord(scores, probabilities, label));
  EXPECT_NEAR(MetricOf(sums, "brier"), (0.01 + 0.01 + 0.81 + 0.81) / 2, 1e-6);
  EXPECT_NEAR(MetricOf(sums, "log_loss"), -(std::log(0.9) + std::log(0.1)) / 2, 1e-6);
  EXPECT_NEAR(MetricOf(sums, "ece"), 0.4, 1e-6) << "one bin: half right with a confidence of 0.9";
  sums.Add(MakeClassRecord(std::vector<float>{0.35f, 0.65f, 0}, std::vector{0.35, 0.65, 0.0}, 1));
  EXPECT_NEAR(MetricOf(sums, "ece"), (2 * 0.4 + 0.35) / 3, 1e-6);
}

TEST(ClassSumsTest, HandValueOfTheBrierScoreOfTwoClasses) {
  ClassSums sums(2);
  sums.Add(MakeClassRecord(std::vector<float>{0.3f, 0.7f}, std::vector{0.3, 0.7}, 1));
  EXPECT_NEAR(MetricOf(sums, "brier"), 0.09, 1e-6);
}

TEST(ClassSumsTest, TiesAndNansCountAgainstTheLabel) {
  const std::vector<double> none(3, 1.0 / 3);
  EXPECT_EQ(MakeClassRecord(std::vector<float>{1, 1, 0}, none, 0).above, 1);
  EXPECT_EQ(MakeClassRecord(std::vector<float>{1, NAN, 0}, none, 0).above, 1);
  EXPECT_EQ(MakeClassRecord(std::vector<float>{1, 2, 0}, none, 1).above, 0);
}

TEST(ClassSumsTest, AWeightCountsARecordSeveralTimes) {
  ClassSums twice(2), weighted(2);
  const ClassRecord record{.label = 1, .predicted = 0, .above = 1, .confidence = 0.7f};
  twice.Add(record);
  twice.Add(record);
  weighted.Add(record, 2);
  for (ClassSums* sums : {&twice, &weighted}) sums->Add({.label = 0, .confidence = 0.6f});
  for (const char* name : {"accuracy", "macro_f1", "mcc", "kappa", "ece"}) {
    EXPECT_DOUBLE_EQ(MetricOf(twice, name), MetricOf(weighted, name)) << name;
  }
}

}  // namespace
}  // namespace trainer
