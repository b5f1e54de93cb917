#include "observers/histogram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace trainer {
namespace {

using testing::ElementsAre;

double Total(const HistogramBuckets& buckets) {
  return std::accumulate(buckets.counts.begin(), buckets.counts.end(), 0.0);
}

TEST(HistogramTest, ValuesStandUnderTheFirstLimitThatIsNotBelowThem) {
  Histogram histogram;
  histogram.Add(std::vector<float>{-3, -1, 0, 0, 0.5f, 1, 1.1f, 2});
  const HistogramBuckets buckets = histogram.Buckets();
  ASSERT_EQ(buckets.limits.size(), buckets.counts.size());
  EXPECT_EQ(Total(buckets), 8);
  auto count_to = [&](double limit) {
    double count = 0;
    for (size_t i = 0; i < buckets.limits.size() && buckets.limits[i] <= limit; ++i) {
      count += buckets.counts[i];
    }
    return count;
  };
  EXPECT_EQ(count_to(-3), 1);
  EXPECT_EQ(count_to(-0.9), 2);
  EXPECT_EQ(count_to(0.25), 4);
  EXPECT_EQ(count_to(0.75), 5);
  EXPECT_EQ(count_to(1.25), 7);  // 1 and 1.1 share a quarter of a power of two
  EXPECT_TRUE(std::is_sorted(buckets.limits.begin(), buckets.limits.end()));
}

TEST(HistogramTest, KnowsRangeSumAndSquares) {
  Histogram histogram;
  histogram.Add(std::vector<float>{-3, 1, 4}, 0.5f);
  EXPECT_EQ(histogram.count(), 3);
  EXPECT_EQ(histogram.min(), -1.5);
  EXPECT_EQ(histogram.max(), 2);
  EXPECT_EQ(histogram.sum(), 1);
  EXPECT_EQ(histogram.sum_of_squares(), 2.25 + 0.25 + 4);
}

TEST(HistogramTest, WhatIsNotFiniteIsLeftOut) {
  Histogram histogram;
  histogram.Add(std::vector<float>{NAN, INFINITY, -INFINITY, 3.4e38f, -3.4e38f});
  EXPECT_EQ(histogram.count(), 2);
  EXPECT_EQ(Total(histogram.Buckets()), 2);
  EXPECT_TRUE(std::isfinite(histogram.Buckets().limits.back()));
}

TEST(HistogramTest, SmallValuesShareABucketAroundZero) {
  std::vector<float> values;
  for (int i = -126; i <= 0; ++i) {
    values.push_back(std::ldexp(1.0f, i));
    values.push_back(-std::ldexp(1.0f, i));
  }
  Histogram histogram;
  histogram.Add(values);
  const HistogramBuckets buckets = histogram.Buckets();
  EXPECT_EQ(Total(buckets), 2 * 127);
  EXPECT_LT(buckets.limits.size(), 110u);
  EXPECT_TRUE(std::is_sorted(buckets.limits.begin(), buckets.limits.end()));
}

TEST(HistogramTest, NoValuesAreOneEmptyBucket) {
  EXPECT_THAT(Histogram().Buckets().counts, ElementsAre(0));
  EXPECT_EQ(Histogram().min(), 0);
}

}  // namespace
}  // namespace trainer
