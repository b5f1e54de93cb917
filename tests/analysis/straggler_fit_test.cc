// Compares the wait for the slowest rank with order statistics and published rates.

#include "scaling/straggler_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/base/error/error.h"

namespace trainer {
namespace {

// Tables of normal order statistics give these expected maxima of n values.
TEST(ExpectedMaxTest, EqualsPublishedOrderStatistics) {
  EXPECT_EQ(ExpectedMax(1), 0);
  EXPECT_NEAR(ExpectedMax(2), 0.56419, 1e-5);
  EXPECT_NEAR(ExpectedMax(4), 1.02938, 1e-5);
  EXPECT_NEAR(ExpectedMax(10), 1.53875, 1e-5);
  EXPECT_NEAR(ExpectedMax(100), 2.50759, 1e-5);
  EXPECT_NEAR(ExpectedMax(1000), 3.24144, 1e-5);
}

// Returns ResNet-50, with gradients of 25.6 million weights; the last stage comes first.
IterationProfile ResNet50() {
  IterationProfile work;
  work.forward = 1.0 / 3;
  work.backward = 2.0 / 3;
  work.images = 32;
  // The first column is the weights in millions, from the last layer and stage to the first. The
  // second is the share of the backward time that has then passed.
  const std::pair<double, double> parts[] = {{2.05, 0.01}, {14.96, 0.21}, {7.10, 0.52},
                                             {1.22, 0.78}, {0.22, 0.95},  {0.01, 1}};
  double before = 0;
  for (const auto& [millions, share] : parts) {
    constexpr int kBlocks = 4;
    for (int i = 1; i <= kBlocks; ++i) {
      const double part = before + (share - before) * i / kBlocks;
      work.gradients.push_back({"stage", millions * 4e6 / kBlocks, work.backward * part});
    }
    before = share;
  }
  return work;
}

// Horovod published images/s for ResNet-50, with 32 images on each GPU. This test assumes what it
// does not say: 4 GPUs on a machine, 25 Gbit/s between machines, and buckets of the gradients that
// become ready in its cycle of 5 ms, about a twenty-fifth of backward.
TEST(StragglerFitTest, PredictsHorovodsRatesFromTheFirstTwo) {
  ClusterModel cluster;
  cluster.ranks_per_machine = 4;
  cluster.inside = {5e-6, 10e9, true};
  cluster.link = MakeLinkModel(*FindLink("25GbE"));
  const ScalingOptions options{.bucket_bytes = 4 << 20};
  const CalibratedProfile fitted =
      CalibrateStragglers(ResNet50(), cluster, options, {2, 322.93}, {4, 629.01});
  EXPECT_GT(fitted.jitter, 0);
  EXPECT_LT(fitted.jitter, 0.1);
  const ScalingOptions with{.bucket_bytes = 4 << 20, .jitter = fitted.jitter};
  const MeasuredRate all[] = {{2, 322.93},   {4, 629.01},   {8, 1238.57},
                              {16, 2443.49}, {32, 4825.47}, {64, 9318.20}};
  for (const MeasuredRate& measured : all) {
    cluster.ranks = measured.ranks;
    const double rate =
        measured.ranks * 32 / PredictIteration(fitted.profile, cluster, with).seconds;
    EXPECT_NEAR(rate / measured.images_per_second, 1, measured.ranks > 4 ? 0.05 : 1e-3)
        << measured.ranks << " ranks: " << rate << " images/s";
    RecordProperty("images_per_s_of_" + std::to_string(measured.ranks), std::to_string(rate));
  }
}

TEST(StragglerFitTest, RefusesRatesThatRiseFasterThanTheRanks) {
  EXPECT_THROW(CalibrateStragglers(ResNet50(), {}, {}, {2, 100}, {4, 300}), Error);
}

}  // namespace
}  // namespace trainer
