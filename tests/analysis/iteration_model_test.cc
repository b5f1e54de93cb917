// Compares predicted iterations of several ranks with timelines drawn by hand.

#include "scaling/iteration_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace trainer {
namespace {

constexpr double kStepTiny = 1e-9;
constexpr double kFour = 4 / 1e6;  // seconds to sum one value between the machines below

// The link has no latency, so a sum of x bytes takes x / 1e6 seconds (two steps of half the bytes).
ClusterModel TwoMachines() {
  ClusterModel cluster;
  cluster.ranks = 2;
  cluster.link = LinkModel("test", 0, 1e6, 0);
  return cluster;
}

// Forward takes 1 s, backward 2 s, update 0.5 s; two 1 MB slices are ready midway and at the end.
IterationProfile Work() {
  IterationProfile work;
  work.forward = 1;
  work.backward = 2;
  work.update = 0.5;
  work.gradients = {{"b", 1e6, 1}, {"a", 1e6, 2}};
  work.images = 10;
  return work;
}

TEST(IterationModelTest, OfOneRankIsItsWork) {
  ClusterModel cluster = TwoMachines();
  cluster.ranks = 1;
  const IterationPrediction step = PredictIteration(Work(), cluster);
  EXPECT_NEAR(step.seconds, 3.5, kStepTiny);
  EXPECT_EQ(step.exposed, 0);
  EXPECT_EQ(step.bottleneck, Bottleneck::kCompute);
  EXPECT_TRUE(step.buckets.empty());
}

TEST(IterationModelTest, HidesTheFirstBucketBehindBackward) {
  const IterationPrediction step =
      PredictIteration(Work(), TwoMachines(), {.bucket_bytes = 500'000});
  ASSERT_EQ(step.buckets.size(), 2u);
  EXPECT_NEAR(step.buckets[0].begin, 2, kStepTiny);
  EXPECT_NEAR(step.buckets[0].end, 3, kStepTiny);
  EXPECT_NEAR(step.buckets[1].begin, 3, kStepTiny);
  EXPECT_NEAR(step.buckets[1].end, 4, kStepTiny);
  EXPECT_NEAR(step.end, 3, kStepTiny);
  EXPECT_NEAR(step.seconds, 4.5 + 2 * kFour, kStepTiny);
  EXPECT_NEAR(step.exposed, 1 + 2 * kFour, kStepTiny);
  EXPECT_EQ(step.bottleneck, Bottleneck::kBandwidth);
}

TEST(IterationModelTest, SendsAtTheEndWhatFillsNoBucket) {
  const IterationPrediction step =
      PredictIteration(Work(), TwoMachines(), {.bucket_bytes = 5'000'000});
  ASSERT_EQ(step.buckets.size(), 1u);
  EXPECT_EQ(step.buckets[0].first, 0);
  EXPECT_EQ(step.buckets[0].last, 1);
  EXPECT_NEAR(step.buckets[0].begin, 3, kStepTiny);
  EXPECT_NEAR(step.seconds, 5.5 + 2 * kFour, kStepTiny);
}

TEST(IterationModelTest, SendsOneBucketAfterTheOther) {
  IterationProfile work = Work();
  work.gradients[0].bytes = 3e6;
  const IterationPrediction step = PredictIteration(work, TwoMachines(), {.bucket_bytes = 500'000});
  EXPECT_NEAR(step.buckets[1].ready, 3, kStepTiny);
  EXPECT_NEAR(step.buckets[1].begin, 5, kStepTiny);
  EXPECT_NEAR(step.seconds, 6.5 + 2 * kFour, kStepTiny);
  EXPECT_EQ(step.bottleneck, Bottleneck::kBandwidth);
}

TEST(IterationModelTest, ComputesSlowerWhileItSends) {
  ClusterModel cluster = TwoMachines();
  cluster.overlap_cost = 0.25;
  // The bucket takes 1 s, during which 0.75 s of backward are done; 0.25 s are left.
  const IterationPrediction step = PredictIteration(Work(), cluster, {.bucket_bytes = 500'000});
  EXPECT_NEAR(step.end, 3.25, kStepTiny);
  EXPECT_NEAR(step.seconds, 4.75 + 2 * kFour, kStepTiny);
  cluster.overlap_cost = 1;
  EXPECT_NEAR(PredictIteration(Work(), cluster, {.bucket_bytes = 500'000}).seconds, 5.5 + 2 * kFour,
              kStepTiny);
}

TEST(IterationModelTest, HidesNothingInOneMachine) {
  ClusterModel cluster = TwoMachines();
  cluster.ranks_per_machine = 2;
  cluster.inside = {0, 1e7};  // 1 MB takes 0.4 s
  const IterationPrediction step = PredictIteration(Work(), cluster, {.bucket_bytes = 500'000});
  EXPECT_NEAR(step.buckets[0].end, 2.4, kStepTiny);
  EXPECT_NEAR(step.end, 3.8, kStepTiny);
  EXPECT_NEAR(step.exposed, 0.8 + 2 * 16 / 1e7, kStepTiny);
  cluster.inside.by_gpus = true;  // 2 * 1 MB / 2 takes 0.1 s, during backward
  EXPECT_NEAR(PredictIteration(Work(), cluster, {.bucket_bytes = 500'000}).exposed, 0.1 + 2 * 4e-7,
              kStepTiny);
}

TEST(IterationModelTest, WaitsForTheSlowestRank) {
  const IterationPrediction step =
      PredictIteration(Work(), TwoMachines(), {.bucket_bytes = 500'000, .jitter = 0.1});
  EXPECT_NEAR(step.waiting, 3.5 * 0.1 / std::sqrt(M_PI), 1e-6);
}

TEST(IterationModelTest, NamesItsLimit) {
  const ScalingOptions small{.bucket_bytes = 1};
  ClusterModel cluster = TwoMachines();
  cluster.link = LinkModel("fast", 0, 1e9, 0);
  EXPECT_EQ(PredictIteration(Work(), cluster, small).bottleneck, Bottleneck::kCompute);
  EXPECT_EQ(PredictIteration(Work(), cluster, {.bucket_bytes = 1, .jitter = 0.3}).bottleneck,
            Bottleneck::kStraggler);
  cluster.link = LinkModel("far", 0.5, 1e9, 0);
  EXPECT_EQ(PredictIteration(Work(), cluster, small).bottleneck, Bottleneck::kLatency);
  cluster.link = LinkModel("slow", 0, 1e6, 0);
  EXPECT_EQ(PredictIteration(Work(), cluster, small).bottleneck, Bottleneck::kBandwidth);
  IterationProfile late = Work();
  late.gradients = {{"a", 1.5e6, 2}};
  EXPECT_EQ(PredictIteration(late, cluster, small).bottleneck, Bottleneck::kExposed);
}

}  // namespace
}  // namespace trainer
