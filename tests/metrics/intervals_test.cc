#include "intervals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace trainer {
namespace {

TEST(IntervalsTest, HandValuesOfWilson) {
  const MetricValue::Interval half = WilsonInterval(0.5, 10);
  EXPECT_NEAR(half.low, 0.236593, 1e-5);
  EXPECT_NEAR(half.high, 0.763407, 1e-5);
  const MetricValue::Interval all = WilsonInterval(1, 10);
  EXPECT_NEAR(all.low, 0.722467, 1e-5);
  EXPECT_NEAR(all.high, 1, 1e-12);
}

TEST(IntervalsTest, PercentilesAreLinearBetweenNeighbours) {
  std::vector<double> values(101);
  std::iota(values.begin(), values.end(), 0);
  values.push_back(NAN);
  EXPECT_NEAR(Percentiles(values)->low, 2.5, 1e-12);
  EXPECT_NEAR(Percentiles(values)->high, 97.5, 1e-12);
  EXPECT_FALSE(Percentiles({NAN}));
  EXPECT_FALSE(Percentiles({}));
}

TEST(IntervalsTest, ASampleHasAsManyRecordsAsThereAre) {
  const Resamples samples(7);
  ASSERT_EQ(samples.size(), 1000u);
  std::vector<int> drawn(7);
  for (size_t sample = 0; sample < samples.size(); ++sample) {
    int sum = 0;
    for (size_t i = 0; i < drawn.size(); ++i) {
      sum += samples.Weights(sample)[i];
      drawn[i] += samples.Weights(sample)[i];
    }
    EXPECT_EQ(sum, 7);
  }
  for (const int count : drawn) EXPECT_NEAR(count, 1000, 150);
  EXPECT_FALSE(std::ranges::equal(samples.Weights(0), samples.Weights(1)));
}

TEST(IntervalsTest, ThereAreNoSamplesOfVeryManyRecords) {
  EXPECT_EQ(Resamples(1).size(), 0u);
  EXPECT_EQ(Resamples(2'000'000).size(), 0u);
}

}  // namespace
}  // namespace trainer
