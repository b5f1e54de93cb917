#include "trainer/solver/lr_policy.h"

#include <gtest/gtest.h>

#include <cmath>

namespace trainer {
namespace {

caffe::SolverParameter Policy(const std::string& name) {
  caffe::SolverParameter solver;
  solver.set_lr_policy(name);
  solver.set_base_lr(0.5f);
  solver.set_gamma(0.1f);
  solver.set_power(0.75f);
  solver.set_stepsize(10);
  solver.set_max_iter(100);
  return solver;
}

float RateAt(const std::string& policy, int iter, int step = 0) {
  return LearningRate(Policy(policy), iter, step);
}

TEST(LrPolicyTest, FixedStaysAtBaseLr) { EXPECT_FLOAT_EQ(RateAt("fixed", 1234), 0.5f); }

TEST(LrPolicyTest, StepFallsByGammaEveryStepsize) {
  EXPECT_FLOAT_EQ(RateAt("step", 9), 0.5f);
  EXPECT_FLOAT_EQ(RateAt("step", 10), 0.05f);
  EXPECT_FLOAT_EQ(RateAt("step", 29), 0.005f);
}

TEST(LrPolicyTest, ExpFallsByGammaEveryIteration) {
  EXPECT_FLOAT_EQ(RateAt("exp", 0), 0.5f);
  EXPECT_FLOAT_EQ(RateAt("exp", 3), 0.0005f);
}

TEST(LrPolicyTest, InvIsAPowerOfOnePlusGammaIter) {
  EXPECT_FLOAT_EQ(RateAt("inv", 100), static_cast<float>(0.5 * std::pow(11.0, -0.75)));
}

TEST(LrPolicyTest, PolyReachesZeroAtMaxIter) {
  EXPECT_FLOAT_EQ(RateAt("poly", 50), static_cast<float>(0.5 * std::pow(0.5, 0.75)));
  EXPECT_FLOAT_EQ(RateAt("poly", 100), 0.0f);
}

TEST(LrPolicyTest, SigmoidIsHalfAtStepsize) {
  EXPECT_FLOAT_EQ(RateAt("sigmoid", 10), 0.25f);
  EXPECT_FLOAT_EQ(RateAt("sigmoid", 20), static_cast<float>(0.5 / (1 + std::exp(-1.0))));
}

TEST(LrPolicyTest, MultistepTakesAtMostOneStepPerIteration) {
  caffe::SolverParameter solver = Policy("multistep");
  solver.add_stepvalue(5);
  solver.add_stepvalue(5);
  EXPECT_FALSE(TakesStep(solver, 4, 0));
  EXPECT_TRUE(TakesStep(solver, 5, 0));
  EXPECT_TRUE(TakesStep(solver, 5, 1));
  EXPECT_FALSE(TakesStep(solver, 500, 2));
  EXPECT_FLOAT_EQ(LearningRate(solver, 6, 2), 0.005f);
}

}  // namespace
}  // namespace trainer
