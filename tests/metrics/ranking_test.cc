#include "ranking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Ranking Ranked(const std::vector<float>& scores, const std::vector<uint8_t>& positive) {
  return Ranking(scores, positive);
}

// Returns the points as pairs.
std::vector<std::pair<double, double>> PairsOf(const std::vector<CurvePoint>& points) {
  std::vector<std::pair<double, double>> pairs;
  for (const CurvePoint& point : points) pairs.emplace_back(point.x, point.y);
  return pairs;
}

TEST(RankingTest, HandValues) {
  const Ranking ranking = Ranked({0.7f, 0.9f, 0.6f, 0.8f}, {1, 1, 0, 0});
  EXPECT_NEAR(ranking.Auc(), 3.0 / 4, 1e-12);
  EXPECT_NEAR(ranking.AveragePrecision(), 0.5 * 1 + 0.5 * 2 / 3, 1e-12);
  EXPECT_THAT(PairsOf(ranking.Roc(100)),
              ElementsAre(std::pair(0, 0), std::pair(0, 0.5), std::pair(0.5, 0.5),
                          std::pair(0.5, 1), std::pair(1, 1)));
  EXPECT_THAT(PairsOf(ranking.PrecisionRecall(100)),
              ElementsAre(std::pair(0.5, 1), std::pair(0.5, 0.5), std::pair(1, 2.0 / 3),
                          std::pair(1, 0.5)));
}

TEST(RankingTest, HandValuesOfTies) {
  const Ranking all = Ranked({1, 1, 1, 1}, {1, 0, 0, 0});
  EXPECT_EQ(all.Auc(), 0.5);
  EXPECT_EQ(all.AveragePrecision(), 0.25);
  const Ranking some = Ranked({2, 1, 1, 0}, {1, 1, 0, 0});
  EXPECT_NEAR(some.Auc(), 3.5 / 4, 1e-12);
  EXPECT_NEAR(some.AveragePrecision(), 0.5 + 0.5 * 2 / 3, 1e-12);
}

TEST(RankingTest, AWeightCountsARecordSeveralTimes) {
  const std::vector<uint8_t> weights = {2, 1, 0, 1};
  const Ranking weighted = Ranked({0.9f, 0.8f, 0.5f, 0.7f}, {1, 0, 1, 1});
  const Ranking repeated = Ranked({0.9f, 0.9f, 0.8f, 0.7f}, {1, 1, 0, 1});
  EXPECT_NEAR(weighted.Auc(weights), 2.0 / 3, 1e-12);
  EXPECT_NEAR(weighted.Auc(weights), repeated.Auc(), 1e-12);
  EXPECT_NEAR(weighted.AveragePrecision(weights), repeated.AveragePrecision(), 1e-12);
}

TEST(RankingTest, ARecordWithANanScoreRanksLast) {
  EXPECT_EQ(Ranked({NAN, -5, 3}, {0, 1, 1}).Auc(), 1);
}

TEST(RankingTest, WithoutBothKindsItIsNotDefined) {
  EXPECT_TRUE(std::isnan(Ranked({1, 2}, {1, 1}).Auc()));
  EXPECT_TRUE(std::isnan(Ranked({1, 2}, {0, 0}).AveragePrecision()));
  EXPECT_TRUE(std::isnan(Ranked({}, {}).Auc()));
  EXPECT_THAT(Ranked({1, 2}, {0, 0}).Roc(10), IsEmpty());
  EXPECT_THAT(Ranked({1, 2}, {0, 0}).PrecisionRecall(10), IsEmpty());
}

TEST(RankingTest, ACurveOfManyRecordsHasFewPoints) {
  std::vector<float> scores;
  std::vector<uint8_t> positive;
  for (int i = 0; i < 10000; ++i) {
    scores.push_back(static_cast<float>(i * 7919 % 10007));
    positive.push_back(scores.back() + static_cast<float>(i * 31 % 5000) > 7000 ? 1 : 0);
  }
  const std::vector<CurvePoint> roc = Ranked(scores, positive).Roc(200);
  EXPECT_LE(roc.size(), 200u);
  EXPECT_GT(roc.size(), 100u);
  EXPECT_EQ(roc.front().x, 0);
  EXPECT_EQ(roc.back().x, 1);
  EXPECT_EQ(roc.back().y, 1);
}

}  // namespace
}  // namespace trainer
