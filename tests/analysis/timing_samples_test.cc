#include "trainer/analysis/timing/timing_samples.h"

#include <gtest/gtest.h>

namespace trainer {
namespace {

TimingSamples SamplesOf(std::initializer_list<double> values) {
  TimingSamples samples;
  for (const double ms : values) samples.Add(ms);
  return samples;
}

TEST(TimingSamplesTest, WithoutSamplesEveryStatisticIsZero) {
  const TimingSamples none;
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.Min() + none.Mean() + none.Median() + none.ExcessOfTwo(), 0);
}

TEST(TimingSamplesTest, ComputesMinimumMeanAndMedian) {
  const TimingSamples samples = SamplesOf({4, 1, 10});
  EXPECT_EQ(samples.size(), 3u);
  EXPECT_EQ(samples.Min(), 1);
  EXPECT_EQ(samples.Mean(), 5);
  EXPECT_EQ(samples.Median(), 4);
  EXPECT_EQ(SamplesOf({4, 1, 10, 6}).Median(), 5);
}

// The pairs of 1, 2 and 6 have the maxima 2, 6 and 6, which are 14/3 on average; the mean is 3.
TEST(TimingSamplesTest, TheLargerOfTwoExceedsTheMean) {
  EXPECT_NEAR(SamplesOf({6, 1, 2}).ExcessOfTwo(), 14.0 / 3 - 3, 1e-12);
  EXPECT_EQ(SamplesOf({6}).ExcessOfTwo(), 0);
}

}  // namespace
}  // namespace trainer
