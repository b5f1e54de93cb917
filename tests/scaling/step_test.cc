// Iterations of several ranks in the model, against time lines drawn by hand and published rates.

#include "trainer/scaling/step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "trainer/base/error/error.h"

namespace trainer {
namespace {

constexpr double kStepTiny = 1e-9;
constexpr double kFour = 4 / 1e6;  // seconds of a sum of one number between the machines below

// No latency; a sum of x bytes takes x / 1e6 seconds (two steps of half the bytes).
Cluster TwoMachines() {
  Cluster cluster;
  cluster.ranks = 2;
  cluster.link = Link("test", 0, 1e6, 0);
  return cluster;
}

// 1 s forward, 2 s backward, 0.5 s update; two slices of 1 MB, ready in the middle and at the end.
StepWork Work() {
  StepWork work;
  work.forward = 1;
  work.backward = 2;
  work.update = 0.5;
  work.slices = {{"b", 1e6, 1}, {"a", 1e6, 2}};
  work.images = 10;
  return work;
}

TEST(StepTest, OfOneRankIsItsWork) {
  Cluster cluster = TwoMachines();
  cluster.ranks = 1;
  const StepPrediction step = PredictStep(Work(), cluster);
  EXPECT_NEAR(step.seconds, 3.5, kStepTiny);
  EXPECT_EQ(step.exposed, 0);
  EXPECT_EQ(step.limit, Limit::kCompute);
  EXPECT_TRUE(step.buckets.empty());
}

TEST(StepTest, HidesTheFirstBucketBehindBackward) {
  const StepPrediction step = PredictStep(Work(), TwoMachines(), {.bucket_bytes = 500'000});
  ASSERT_EQ(step.buckets.size(), 2u);
  EXPECT_NEAR(step.buckets[0].begin, 2, kStepTiny);
  EXPECT_NEAR(step.buckets[0].end, 3, kStepTiny);
  EXPECT_NEAR(step.buckets[1].begin, 3, kStepTiny);
  EXPECT_NEAR(step.buckets[1].end, 4, kStepTiny);
  EXPECT_NEAR(step.end, 3, kStepTiny);
  EXPECT_NEAR(step.seconds, 4.5 + 2 * kFour, kStepTiny);
  EXPECT_NEAR(step.exposed, 1 + 2 * kFour, kStepTiny);
  EXPECT_EQ(step.limit, Limit::kBandwidth);
}

TEST(StepTest, SendsAtTheEndWhatFillsNoBucket) {
  const StepPrediction step = PredictStep(Work(), TwoMachines(), {.bucket_bytes = 5'000'000});
  ASSERT_EQ(step.buckets.size(), 1u);
  EXPECT_EQ(step.buckets[0].first, 0);
  EXPECT_EQ(step.buckets[0].last, 1);
  EXPECT_NEAR(step.buckets[0].begin, 3, kStepTiny);
  EXPECT_NEAR(step.seconds, 5.5 + 2 * kFour, kStepTiny);
}

TEST(StepTest, SendsOneBucketAfterTheOther) {
  StepWork work = Work();
  work.slices[0].bytes = 3e6;
  const StepPrediction step = PredictStep(work, TwoMachines(), {.bucket_bytes = 500'000});
  EXPECT_NEAR(step.buckets[1].ready, 3, kStepTiny);
  EXPECT_NEAR(step.buckets[1].begin, 5, kStepTiny);
  EXPECT_NEAR(step.seconds, 6.5 + 2 * kFour, kStepTiny);
  EXPECT_EQ(step.limit, Limit::kBandwidth);
}

TEST(StepTest, ComputesSlowerWhileItSends) {
  Cluster cluster = TwoMachines();
  cluster.overlap_cost = 0.25;
  // The bucket takes 1 s, in which 0.75 s of backward are done; 0.25 s are left.
  const StepPrediction step = PredictStep(Work(), cluster, {.bucket_bytes = 500'000});
  EXPECT_NEAR(step.end, 3.25, kStepTiny);
  EXPECT_NEAR(step.seconds, 4.75 + 2 * kFour, kStepTiny);
  cluster.overlap_cost = 1;
  EXPECT_NEAR(PredictStep(Work(), cluster, {.bucket_bytes = 500'000}).seconds, 5.5 + 2 * kFour,
              kStepTiny);
}

TEST(StepTest, HidesNothingInOneMachine) {
  Cluster cluster = TwoMachines();
  cluster.ranks_per_machine = 2;
  cluster.inside = {0, 1e7};  // 1 MB: 0.4 s
  const StepPrediction step = PredictStep(Work(), cluster, {.bucket_bytes = 500'000});
  EXPECT_NEAR(step.buckets[0].end, 2.4, kStepTiny);
  EXPECT_NEAR(step.end, 3.8, kStepTiny);
  EXPECT_NEAR(step.exposed, 0.8 + 2 * 16 / 1e7, kStepTiny);
  cluster.inside.by_gpus = true;  // 2 * 1 MB / 2: 0.1 s, beside backward
  EXPECT_NEAR(PredictStep(Work(), cluster, {.bucket_bytes = 500'000}).exposed, 0.1 + 2 * 4e-7,
              kStepTiny);
}

TEST(StepTest, WaitsForTheSlowestRank) {
  const StepPrediction step =
      PredictStep(Work(), TwoMachines(), {.bucket_bytes = 500'000, .jitter = 0.1});
  EXPECT_NEAR(step.waiting, 3.5 * 0.1 / std::sqrt(M_PI), 1e-6);
}

TEST(StepTest, NamesItsLimit) {
  const StepOptions small{.bucket_bytes = 1};
  Cluster cluster = TwoMachines();
  cluster.link = Link("fast", 0, 1e9, 0);
  EXPECT_EQ(PredictStep(Work(), cluster, small).limit, Limit::kCompute);
  EXPECT_EQ(PredictStep(Work(), cluster, {.bucket_bytes = 1, .jitter = 0.3}).limit,
            Limit::kStraggler);
  cluster.link = Link("far", 0.5, 1e9, 0);
  EXPECT_EQ(PredictStep(Work(), cluster, small).limit, Limit::kLatency);
  cluster.link = Link("slow", 0, 1e6, 0);
  EXPECT_EQ(PredictStep(Work(), cluster, small).limit, Limit::kBandwidth);
  StepWork late = Work();
  late.slices = {{"a", 1.5e6, 2}};
  EXPECT_EQ(PredictStep(late, cluster, small).limit, Limit::kExposed);
}

// Means of the greatest of n numbers, as in tables of normal order statistics.
TEST(ExpectedMaxTest, EqualsPublishedOrderStatistics) {
  EXPECT_EQ(ExpectedMax(1), 0);
  EXPECT_NEAR(ExpectedMax(2), 0.56419, 1e-5);
  EXPECT_NEAR(ExpectedMax(4), 1.02938, 1e-5);
  EXPECT_NEAR(ExpectedMax(10), 1.53875, 1e-5);
  EXPECT_NEAR(ExpectedMax(100), 2.50759, 1e-5);
  EXPECT_NEAR(ExpectedMax(1000), 3.24144, 1e-5);
}

// ResNet-50: gradients of 25.6 million weights, those of the last stage first.
StepWork ResNet50() {
  StepWork work;
  work.forward = 1.0 / 3;
  work.backward = 2.0 / 3;
  work.images = 32;
  // Weights in millions of the last layer and of the stages from the last to the first, and the
  // share of backward's time that is then over.
  const std::pair<double, double> parts[] = {{2.05, 0.01}, {14.96, 0.21}, {7.10, 0.52},
                                             {1.22, 0.78}, {0.22, 0.95},  {0.01, 1}};
  double before = 0;
  for (const auto& [millions, share] : parts) {
    constexpr int kBlocks = 4;
    for (int i = 1; i <= kBlocks; ++i) {
      const double part = before + (share - before) * i / kBlocks;
      work.slices.push_back({"stage", millions * 4e6 / kBlocks, work.backward * part});
    }
    before = share;
  }
  return work;
}

// Horovod's published images/s for ResNet-50, 32 images on each GPU. Where it does not say: 4 GPUs
// on a machine, 25 Gbit/s between them, and buckets of what becomes ready in its cycle of 5 ms,
// about a twenty-fifth of backward.
TEST(FitTest, PredictsHorovodsRatesFromTheFirstTwo) {
  Cluster cluster;
  cluster.ranks_per_machine = 4;
  cluster.inside = {5e-6, 10e9, true};
  cluster.link = MakeLink(*FindLink("25GbE"));
  const StepOptions options{.bucket_bytes = 4 << 20};
  const FittedWork fitted = FitWork(ResNet50(), cluster, options, {2, 322.93}, {4, 629.01});
  EXPECT_GT(fitted.jitter, 0);
  EXPECT_LT(fitted.jitter, 0.1);
  const StepOptions with{.bucket_bytes = 4 << 20, .jitter = fitted.jitter};
  const MeasuredRate all[] = {{2, 322.93},   {4, 629.01},   {8, 1238.57},
                              {16, 2443.49}, {32, 4825.47}, {64, 9318.20}};
  for (const MeasuredRate& measured : all) {
    cluster.ranks = measured.ranks;
    const double rate = measured.ranks * 32 / PredictStep(fitted.work, cluster, with).seconds;
    EXPECT_NEAR(rate / measured.images_per_second, 1, measured.ranks > 4 ? 0.05 : 1e-3)
        << measured.ranks << " ranks: " << rate << " images/s";
    RecordProperty("images_per_s_of_" + std::to_string(measured.ranks), std::to_string(rate));
  }
}

TEST(FitTest, RefusesRatesThatRiseFasterThanTheRanks) {
  EXPECT_THROW(FitWork(Work(), TwoMachines(), {}, {2, 100}, {4, 300}), Error);
}

}  // namespace
}  // namespace trainer
