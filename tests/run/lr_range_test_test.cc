// The learning rate that is derived from losses at rising rates.

#include "trainer/run/search/lr_range_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "trainer/solver/lr_schedule.h"

namespace trainer {
namespace {

using testing::DoubleNear;
using testing::FloatNear;

constexpr int kPoints = 200;

double RateOf(int i) { return 1e-6 * std::pow(1e6, i / (kPoints - 1.0)); }

// Losses that are flat, fall fastest at 0.003, are lowest at about 0.05 and rise far beyond, with
// noise that no average over few points hides.
double LossOf(int i) {
  const double x = std::log10(RateOf(i));
  const double noise = 0.05 * std::sin(37.0 * i) + 0.03 * std::cos(11.0 * i);
  return 2.3 - 1.8 / (1 + std::exp(-4 * (x + 2.5))) + std::exp(8 * (x + 0.8)) + noise;
}

LrRangeTest CurveOf(double (*loss)(int), int points = kPoints) {
  LrRangeTest curve;
  for (int i = 0; i < points && !curve.HasDiverged(); ++i) curve.Add(RateOf(i), loss(i));
  return curve;
}

TEST(LrRangeTestTest, FindsWhereTheLossFallsSteepestUnderNoise) {
  const std::vector<LrRangeTest::Point> points = CurveOf(LossOf).Points();
  const LrRangeTest::Advice advice = LrRangeTest::FindAdvice(points);
  ASSERT_TRUE(advice.steepest);
  EXPECT_THAT(std::log10(points[*advice.steepest].lr), DoubleNear(-2.5, 0.25));
  EXPECT_THAT(std::log10(points[advice.lowest].lr), DoubleNear(-1.2, 0.3));
  EXPECT_FALSE(advice.still_falling);
}

// The losses of an autoencoder: they fall from 990, the cost of bad initial outputs, to 200 at tiny
// learning rates. Learning rates from 0.002 to 0.02 train it well; 0.00005 is far too low.
double OffsetLossOf(int i) {
  const double x = std::log10(RateOf(i));
  const double noise = 5 * std::sin(37.0 * i) + 3 * std::cos(11.0 * i);
  return 200 + 790 / (1 + std::exp(4 * (x + 4.2))) + std::exp(5 * (x + 2)) + noise;
}

TEST(LrRangeTestTest, AdvisesATenthOfTheHighestWhereTheLossFallsFastestFarBelow) {
  const std::vector<LrRangeTest::Point> points = CurveOf(OffsetLossOf).Points();
  const LrRangeTest::Advice advice = LrRangeTest::FindAdvice(points);
  ASSERT_TRUE(advice.steepest && advice.advised);
  EXPECT_THAT(std::log10(points[*advice.steepest].lr), DoubleNear(-4.2, 0.2));
  EXPECT_GE(points[advice.highest].lr, points[advice.lowest].lr);
  EXPECT_GE(points[*advice.advised].lr, 0.002);
  EXPECT_LE(points[*advice.advised].lr, 0.02);
  EXPECT_GE(points[*advice.advised].lr, points[advice.highest].lr / 10);
}

TEST(LrRangeTestTest, AdvisesNoLessThanTheSteepest) {
  const std::vector<LrRangeTest::Point> points =
      CurveOf([](int i) { return LossOf(std::max(i - 20, 0)); }).Points();
  const LrRangeTest::Advice advice = LrRangeTest::FindAdvice(points);
  ASSERT_TRUE(advice.advised);
  EXPECT_GE(*advice.advised, *advice.steepest);
  EXPECT_GE(points[*advice.advised].lr, points[advice.highest].lr / 10);
  EXPECT_LE(points[*advice.advised].lr, points[advice.lowest].lr / 4);
}

TEST(LrRangeTestTest, EndsWhereTheLossDiverges) {
  const LrRangeTest curve = CurveOf(LossOf);
  EXPECT_TRUE(curve.HasDiverged());
  EXPECT_LT(curve.size(), static_cast<size_t>(kPoints));
  EXPECT_GT(RateOf(static_cast<int>(curve.size()) - 1), 0.1);
}

TEST(LrRangeTestTest, OneHighLossIsNoDivergence) {
  const LrRangeTest curve = CurveOf([](int i) { return i == 50 ? 9.0 : 2.3; });
  EXPECT_EQ(curve.size(), static_cast<size_t>(kPoints));
}

TEST(LrRangeTestTest, GivesNoAdviceWhereTheLossDoesNotFall) {
  const auto flat = CurveOf([](int i) { return 2.3 + 0.1 * std::sin(37.0 * i); }).Points();
  EXPECT_FALSE(LrRangeTest::FindAdvice(flat).steepest);
  // The ends of these few points happen to be far apart.
  const auto few = CurveOf([](int i) { return 2.35 + 0.1 * std::sin(3.7 * i + 1.6); }, 60).Points();
  EXPECT_FALSE(LrRangeTest::FindAdvice(few).steepest);
  const auto rising = CurveOf([](int i) { return 2.3 + 0.01 * i; }).Points();
  EXPECT_FALSE(LrRangeTest::FindAdvice(rising).steepest);
}

TEST(LrRangeTestTest, SaysThatTheLossStillFallsAtTheEnd) {
  const auto points = CurveOf([](int i) { return 2.3 - 0.01 * i; }).Points();
  const LrRangeTest::Advice advice = LrRangeTest::FindAdvice(points);
  EXPECT_TRUE(advice.still_falling);
  EXPECT_TRUE(advice.steepest);
}

TEST(LrRangeTestTest, LossesBelowZeroFallAndDivergeAlike) {
  const LrRangeTest curve = CurveOf([](int i) { return LossOf(i) - 5; });
  EXPECT_TRUE(curve.HasDiverged());
  const auto points = curve.Points();
  ASSERT_TRUE(LrRangeTest::FindAdvice(points).steepest);
  EXPECT_THAT(std::log10(points[*LrRangeTest::FindAdvice(points).steepest].lr),
              DoubleNear(-2.5, 0.25));
}

TEST(RaiseRateTest, RisesByOneFactorWhateverPolicyTheSolverHas) {
  caffe::SolverParameter solver;
  solver.set_lr_policy("poly");
  solver.set_power(2);
  solver.set_min_lr(0.01f);
  solver.set_warmup_iter(20);
  solver.set_momentum_policy("poly");
  solver.set_momentum(0.9f);
  solver.set_max_momentum(0.99f);
  RaiseLr({1e-6, 1, 200}, &solver);
  EXPECT_THAT(LearningRate(solver, 0, 0), FloatNear(1e-6f, 1e-11f));
  EXPECT_THAT(LearningRate(solver, 199, 0), FloatNear(1, 1e-3f));
  for (const int i : {0, 50, 150}) {
    EXPECT_THAT(LearningRate(solver, i + 1, 0) / LearningRate(solver, i, 0),
                FloatNear(static_cast<float>(std::pow(1e6, 1 / 199.0)), 1e-4f));
  }
  EXPECT_EQ(LrSchedule(solver).At(199).momentum, 0.9f);
}

}  // namespace
}  // namespace trainer
