#include "rank_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainer {
namespace {

using testing::DoubleNear;

TEST(ReplicaTimesTest, TheHiddenShareIsOfAllTheTimeOfSums) {
  const RankTime ranks[] = {{10, 2, 0, 5}, {10, 1, 0, 4}};
  int straggler = -1;
  EXPECT_DOUBLE_EQ(Summarize(ranks, &straggler).hidden, 9.0 / 12);
  const RankTime none[] = {{10, 2, 0, 0}, {10, 2, 0, -0.1}};
  EXPECT_EQ(Summarize(none, &straggler).hidden, 0) << "the training threads made them";
}

TEST(ReplicaTimesTest, SharesAreMeansOverTheReplicas) {
  const RankTime ranks[] = {{10, 2, 1}, {10, 1.5, 0}, {10, 2.5, 0}};
  int straggler = 0;
  const RanksReport report = Summarize(ranks, &straggler);
  EXPECT_THAT(report.exchange, DoubleNear(0.2, 1e-6));
  EXPECT_THAT(report.data, DoubleNear(1 / 30.0, 1e-6));
  EXPECT_THAT(report.computing, DoubleNear(0.8 - 1 / 30.0, 1e-6));
  EXPECT_EQ(straggler, -1) << "0.75 of 10 seconds are less than a tenth";
}

TEST(ReplicaTimesTest, TheSlowestIsTheOneThatWaitedLeastWhereTheOthersWaitedMuchMore) {
  const RankTime ranks[] = {{10, 5, 0}, {10, 0.5, 4}, {10, 4, 1}};
  int straggler = 0;
  const RanksReport report = Summarize(ranks, &straggler);
  EXPECT_EQ(straggler, 1);
  EXPECT_THAT(report.cost, DoubleNear(0.4, 1e-6));
  EXPECT_THAT(report.slowest_data, DoubleNear(0.4, 1e-6));
}

TEST(ReplicaTimesTest, NoTimeIsNoReport) {
  const RankTime ranks[] = {{0, 0, 0}, {0, 0, 0}};
  int straggler = 0;
  EXPECT_EQ(Summarize(ranks, &straggler).computing, 0);
  EXPECT_EQ(straggler, -1);
}

}  // namespace
}  // namespace trainer
