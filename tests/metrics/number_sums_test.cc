#include "number_sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace trainer {
namespace {

double NumberValue(const NumberSums& sums, const std::string& name) {
  return FindNumberMetric(name)(sums);
}

NumberSums NumbersOf(const std::vector<double>& targets, const std::vector<double>& outputs) {
  NumberSums sums;
  for (size_t i = 0; i < targets.size(); ++i) sums.Add(targets[i], outputs[i]);
  return sums;
}

TEST(NumberSumsTest, HandValues) {
  const NumberSums sums = NumbersOf({3, -0.5, 2, 7}, {2.5, 0, 2, 8});
  EXPECT_NEAR(NumberValue(sums, "mae"), 0.5, 1e-12);
  EXPECT_NEAR(NumberValue(sums, "mse"), 0.375, 1e-12);
  EXPECT_NEAR(NumberValue(sums, "rmse"), std::sqrt(0.375), 1e-12);
  EXPECT_NEAR(NumberValue(sums, "r2"), 1 - 1.5 / 29.1875, 1e-12);
}

TEST(NumberSumsTest, TargetsFarFromZeroKeepTheirDigits) {
  const double far = 1e9;
  const NumberSums sums =
      NumbersOf({far, far + 1, far + 2, far + 3}, {far, far + 1, far + 2, far + 4});
  EXPECT_NEAR(NumberValue(sums, "r2"), 1 - 1.0 / 5, 1e-9);
}

TEST(NumberSumsTest, EqualTargetsAreAllExplainedOrNotAtAll) {
  EXPECT_EQ(NumberValue(NumbersOf({2, 2}, {2, 2}), "r2"), 1);
  EXPECT_EQ(NumberValue(NumbersOf({2, 2}, {2, 3}), "r2"), 0);
  EXPECT_TRUE(std::isnan(NumberValue(NumbersOf({2}, {2}), "r2")));
  EXPECT_TRUE(std::isnan(NumberValue(NumberSums(), "mae")));
}

TEST(NumberSumsTest, AWeightCountsARecordSeveralTimes) {
  NumberSums weighted = NumbersOf({1, 5}, {2, 4});
  weighted.Add(3, 3.5, 2);
  weighted.Add(100, 0, 0);
  const NumberSums repeated = NumbersOf({1, 5, 3, 3}, {2, 4, 3.5, 3.5});
  for (const char* name : {"mae", "rmse", "r2"}) {
    EXPECT_NEAR(NumberValue(weighted, name), NumberValue(repeated, name), 1e-12) << name;
  }
}

}  // namespace
}  // namespace trainer
