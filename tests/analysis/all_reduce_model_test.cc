// Compares predicted times of sums over ranks with values worked out by hand.

#include "scaling/all_reduce_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainer {
namespace {

constexpr double kClusterTiny = 1e-12;

ClusterModel Machines(int ranks, int each = 1) {
  ClusterModel cluster;
  cluster.ranks = ranks;
  cluster.ranks_per_machine = each;
  cluster.inside = {1e-5, 1e10};
  cluster.link = LinkModel("test", 1e-3, 1e8, 1e-5);
  return cluster;
}

TEST(AllReduceTimeTest, OfOneRankIsNothing) {
  EXPECT_EQ(PredictAllReduce(Machines(1), 1 << 20).Total(), 0);
  EXPECT_EQ(ChooseBucketBytes(Machines(1)), 0u);
}

TEST(AllReduceTimeTest, OfTwoMachinesIsTwoHalvesEachWay) {
  const AllReduceTime time = PredictAllReduce(Machines(2), 1 << 20);
  EXPECT_NEAR(time.between, 2 * (1e-3 + 524288 / 1e8), kClusterTiny);
  EXPECT_NEAR(time.latency, 2e-3, kClusterTiny);
  EXPECT_EQ(time.inside, 0);
}

TEST(AllReduceTimeTest, OfFewNumbersIsOneStepWithAllOfThem) {
  EXPECT_NEAR(PredictAllReduce(Machines(2), 4).Total(), 1e-3 + 4 / 1e8, kClusterTiny);
  // Each rank sends 16 KiB to three others, with two extra messages.
  EXPECT_NEAR(PredictAllReduce(Machines(4), 16384).Total(), 1e-3 + 2e-5 + 3 * 16384 / 1e8,
              kClusterTiny);
}

TEST(AllReduceTimeTest, OfFourMachinesSendsThreeQuartersTwice) {
  EXPECT_NEAR(PredictAllReduce(Machines(4), 1 << 20).between, 2 * (1e-3 + 2e-5 + 786432 / 1e8),
              kClusterTiny);
}

TEST(AllReduceTimeTest, OfALargeBufferGoesInParts) {
  EXPECT_NEAR(PredictAllReduce(Machines(2), 8 << 20).between, 4 * 2 * (1e-3 + 1048576 / 1e8),
              kClusterTiny);
}

TEST(AllReduceTimeTest, OfHalvedNumbersSendsHalfTheBytes) {
  ClusterModel cluster = Machines(2);
  cluster.wire_bytes = 2;
  EXPECT_NEAR(PredictAllReduce(cluster, 1 << 20).between, 2 * (1e-3 + 262144 / 1e8), kClusterTiny);
}

TEST(AllReduceTimeTest, InOneMachineIsItsMemorysTime) {
  // The sum has two stages, in which two ranks read and write 1 MiB each.
  EXPECT_NEAR(PredictAllReduce(Machines(2, 2), 1 << 20).Total(), 2e-5 + 4.0 * 1048576 / 1e10,
              kClusterTiny);
  // Mailboxes need one stage.
  EXPECT_NEAR(PredictAllReduce(Machines(4, 4), 400).Total(), 1e-5 + 8 * 400 / 1e10, kClusterTiny);
}

TEST(AllReduceTimeTest, OfSeveralRanksOnEachMachineAddsBoth) {
  const AllReduceTime time = PredictAllReduce(Machines(4, 2), 1 << 20);
  EXPECT_NEAR(time.inside, 2e-5 + 4.0 * 1048576 / 1e10, kClusterTiny);
  // The sum has two lanes of half the values each, which share the machine's link.
  EXPECT_NEAR(time.between, 2 * (1e-3 + 524288 / 1e8), kClusterTiny);
}

TEST(AllReduceTimeTest, OfGpusSendsAllButTheOwnShareTwice) {
  ClusterModel cluster = Machines(4, 4);
  cluster.inside = {1e-6, 1e11, true};
  EXPECT_NEAR(PredictAllReduce(cluster, 1 << 20).Total(), 2e-6 + 1.5 * 1048576 / 1e11,
              kClusterTiny);
}

TEST(BucketTest, IsWhatARunChooses) {
  // The bucket is 8 times the latency times the speed of 1 MiB: 8 * 1.00004 ms * 83.98 MB/s =
  // 671,860, rounded up to 11 times 64 KiB.
  EXPECT_EQ(ChooseBucketBytes(Machines(2)), 11u * 65536);
}

}  // namespace
}  // namespace trainer
