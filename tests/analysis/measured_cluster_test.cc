// Tests the cluster model that uses the times that bench-comm measured.

#include "scaling/measured_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/base/error/error.h"

namespace trainer {
namespace {

constexpr double kSizes[] = {4, 1024, 16384, 262144, 1 << 20, 4 << 20, 16 << 20};

AllReduceResults Sums(const ClusterModel& cluster) {
  AllReduceResults sums;
  sums.ranks = cluster.ranks;
  sums.machines = cluster.machines();
  sums.ranks_per_machine = cluster.ranks_per_machine;
  for (const double bytes : kSizes)
    sums.sums.push_back({bytes, PredictAllReduce(cluster, bytes).Total()});
  return sums;
}

TEST(MeasuredClusterTest, LinkTakesTheMeasuredTimes) {
  for (const int each : {1, 2}) {
    ClusterModel cluster;
    cluster.ranks = 2 * each;
    cluster.ranks_per_machine = each;
    cluster.link = LinkModel("real", 1e-4, 1e8, 0);
    const ClusterModel found = FitCluster("file", Sums(cluster), cluster.inside);
    for (const double bytes : kSizes) {
      EXPECT_NEAR(PredictAllReduce(found, bytes).Total() / PredictAllReduce(cluster, bytes).Total(),
                  1, 0.01)
          << bytes << " bytes, " << each << " ranks on each machine";
    }
    EXPECT_NEAR(found.link.BytesPerSecond() / 1e8, 1, 1e-3);
  }
}

TEST(MeasuredClusterTest, LinkOfTwoMachinesPredictsFour) {
  ClusterModel cluster;
  cluster.ranks = 2;
  cluster.link = LinkModel("real", 1e-4, 1e8, 4e-6);
  ClusterModel found = FitCluster("file", Sums(cluster));
  cluster.ranks = found.ranks = 4;
  EXPECT_NEAR(PredictAllReduce(found, 4 << 20).Total() / PredictAllReduce(cluster, 4 << 20).Total(),
              1, 0.01);
}

TEST(MeasuredClusterTest, MachineTakesTheMeasuredTimes) {
  ClusterModel cluster;
  cluster.ranks = cluster.ranks_per_machine = 4;
  cluster.inside = {2e-6, 3e10};
  const ClusterModel found = FitCluster("file", Sums(cluster));
  EXPECT_NEAR(found.inside.latency, 2e-6, 1e-8);
  EXPECT_NEAR(found.inside.bytes_per_second / 3e10, 1, 1e-3);
}

TEST(MeasuredClusterTest, RefusesWhatNoClusterHas) {
  ClusterModel cluster;
  cluster.ranks = 2;
  const AllReduceResults good = Sums(cluster);
  EXPECT_NO_THROW(FitCluster("file", good));
  AllReduceResults bad = good;
  bad.sums.resize(1);
  EXPECT_THROW(FitCluster("file", bad), Error);
  bad = good;
  bad.sums[2].seconds = 0;
  EXPECT_THROW(FitCluster("file", bad), Error);
  bad = good;
  bad.ranks = 1;
  EXPECT_THROW(FitCluster("file", bad), Error);
  bad = good;
  bad.overlap_cost = 1;
  EXPECT_THROW(FitCluster("file", bad), Error);
}

}  // namespace
}  // namespace trainer
