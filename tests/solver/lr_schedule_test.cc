#include "trainer/solver/lr_schedule.h"

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
  LrSchedule schedule(solver);
  EXPECT_FALSE(schedule.Advance(4, 0));
  EXPECT_FLOAT_EQ(schedule.At(5).lr, LearningRate(solver, 5, 1)) << "before the step is taken";
  EXPECT_EQ(schedule.NoteOf(4), "MultiStep Status: Iteration 4, step = 0");
  EXPECT_TRUE(schedule.Advance(5, 0));
  EXPECT_TRUE(schedule.Advance(5, 0));
  EXPECT_EQ(schedule.NoteOf(5), "MultiStep Status: Iteration 5, step = 2");
  EXPECT_FALSE(schedule.Advance(500, 0));
  EXPECT_FLOAT_EQ(schedule.At(6).lr, 0.005f);
}

// The losses are 3, 2, 4, 2, 5: the second is the minimum, and an equal loss is not a new minimum.
TEST(LrPolicyTest, PlateauStepsAfterAWindowWithoutANewMinimum) {
  caffe::SolverParameter solver = Policy("plateau");
  solver.add_plateau_winsize(2);
  solver.add_plateau_winsize(1);
  LrSchedule schedule(solver);
  EXPECT_TRUE(schedule.FollowsLoss());
  EXPECT_FALSE(schedule.Advance(0, 3));
  EXPECT_FALSE(schedule.Advance(1, 2));
  EXPECT_FALSE(schedule.Advance(2, 4));
  EXPECT_FLOAT_EQ(schedule.At(2).lr, 0.5f);
  EXPECT_TRUE(schedule.Advance(3, 2));
  EXPECT_FLOAT_EQ(schedule.At(3).lr, 0.05f);
  EXPECT_EQ(schedule.NoteOf(3), "Plateau Status: Iteration 3, step = 1");
  EXPECT_EQ(schedule.PlaceOf(3), "The learning rate is 0.05, after 1 of 2 steps from base_lr 0.5");
  EXPECT_TRUE(schedule.Advance(4, 5)) << "a window of one iteration after the step";
  EXPECT_FALSE(schedule.Advance(400, 5)) << "there are two steps";
  EXPECT_FLOAT_EQ(schedule.At(400).lr, 0.005f);
}

TEST(LrPolicyTest, PlateauStartsAfterTheWarmupAndKeepsItsState) {
  caffe::SolverParameter solver = Policy("plateau");
  solver.add_plateau_winsize(2);
  solver.set_warmup_iter(5);
  solver.add_stepvalue(1);  // only multistep reads this
  LrSchedule schedule(solver);
  EXPECT_FLOAT_EQ(schedule.At(4).lr, 0.4f) << "the warm-up ends at base_lr";
  for (int iter = 0; iter < 5; ++iter) EXPECT_FALSE(schedule.Advance(iter, 1));
  EXPECT_FALSE(schedule.Advance(5, 3)) << "the losses of the warm-up do not count";
  EXPECT_FALSE(schedule.Advance(6, 4));
  caffe::SolverState state;
  schedule.Save(&state);
  EXPECT_EQ(state.minimum_loss(), 3);
  EXPECT_EQ(state.iter_last_event(), 5);
  LrSchedule resumed(solver);
  resumed.Restore(state);
  EXPECT_TRUE(resumed.Advance(7, 3));
  caffe::SolverState other;  // from a run with another policy
  other.set_iter(100);
  resumed.Restore(other);
  EXPECT_FALSE(resumed.Advance(101, 9));
}

TEST(LrPolicyTest, CosineFallsFromBaseLrToMinLr) {
  caffe::SolverParameter solver = Policy("cosine");
  solver.set_min_lr(0.1f);
  EXPECT_FLOAT_EQ(LearningRate(solver, 0, 0), 0.5f);
  EXPECT_FLOAT_EQ(LearningRate(solver, 50, 0), 0.3f);
  EXPECT_FLOAT_EQ(LearningRate(solver, 25, 0), static_cast<float>(0.3 + 0.2 * std::sqrt(0.5)));
  EXPECT_FLOAT_EQ(LearningRate(solver, 100, 0), 0.1f);
}

TEST(LrPolicyTest, CosineStartsWhereTheWarmupEnds) {
  for (const bool ramp : {false, true}) {
    caffe::SolverParameter solver = Policy("cosine");
    ramp ? solver.set_rampup_interval(20) : solver.set_warmup_iter(20);
    EXPECT_FLOAT_EQ(LearningRate(solver, 20, 0), 0.5f);
    EXPECT_FLOAT_EQ(LearningRate(solver, 60, 0), 0.25f);
    EXPECT_NEAR(LearningRate(solver, 100, 0), 0, 1e-9);
    EXPECT_FLOAT_EQ(LearningRate(solver, 10, 0), ramp ? 0.125f : 0.25f);
  }
}

TEST(LrPolicyTest, WarmupRisesInALineToThePolicysRate) {
  for (const char* policy : {"fixed", "step", "exp", "inv", "multistep", "poly", "sigmoid"}) {
    caffe::SolverParameter solver = Policy(policy);
    solver.add_stepvalue(3);
    solver.add_stepvalue(40);
    const int steps = 1;  // taken at iteration 20
    const float target = LearningRate(solver, 20, steps);
    solver.set_warmup_iter(20);
    solver.set_warmup_lr(0.0625f);
    EXPECT_FLOAT_EQ(LearningRate(solver, 0, 0), 0.0625f) << policy;
    EXPECT_FLOAT_EQ(LearningRate(solver, 5, 1), 0.0625f + (target - 0.0625f) / 4) << policy;
    EXPECT_FLOAT_EQ(LearningRate(solver, 20, steps), target) << policy;
    solver.clear_warmup_iter();
    const float later = LearningRate(solver, 30, steps);
    solver.set_warmup_iter(20);
    EXPECT_FLOAT_EQ(LearningRate(solver, 30, steps), later) << policy;
  }
}

TEST(LrPolicyTest, WarmupFromWarmupStartLrRisesInALineToBaseLrWhateverThePolicy) {
  for (const char* policy : {"fixed", "step", "exp", "inv", "multistep", "poly", "cosine"}) {
    caffe::SolverParameter solver = Policy(policy);
    solver.add_stepvalue(3);
    const float after = LearningRate(solver, 20, 1);
    solver.set_warmup_iter(20);
    solver.set_warmup_start_lr(0.1f);
    EXPECT_FLOAT_EQ(LearningRate(solver, 0, 0), 0.1f) << policy;
    EXPECT_FLOAT_EQ(LearningRate(solver, 5, 1), 0.2f) << policy;
    EXPECT_FLOAT_EQ(LearningRate(solver, 19, 1), 0.48f) << policy;
    const bool from_the_end = std::string(policy) == "cosine";  // cosine falls after the warm-up
    EXPECT_FLOAT_EQ(LearningRate(solver, 20, 1), from_the_end ? 0.5f : after) << policy;
  }
}

TEST(LrPolicyTest, RampupIsQuadraticToBaseLrWhateverThePolicy) {
  caffe::SolverParameter solver = Policy("exp");
  solver.set_rampup_interval(4);
  solver.set_rampup_lr(0.1f);
  EXPECT_FLOAT_EQ(LearningRate(solver, 0, 0), 0.1f);
  EXPECT_FLOAT_EQ(LearningRate(solver, 2, 0), 0.2f);
  EXPECT_FLOAT_EQ(LearningRate(solver, 3, 0), 0.325f);
  EXPECT_FLOAT_EQ(LearningRate(solver, 4, 0), 0.00005f);
}

TEST(LrPolicyTest, MinLrIsTheFloorOfEveryPolicyAndTheEndOfPoly) {
  for (const char* policy : {"fixed", "step", "exp", "inv", "multistep", "sigmoid", "cosine"}) {
    caffe::SolverParameter solver = Policy(policy);
    solver.set_base_lr(0.01f);
    solver.set_min_lr(0.01f);
    EXPECT_EQ(LearningRate(solver, 90, 3), 0.01f) << policy;
  }
  caffe::SolverParameter solver = Policy("poly");
  solver.set_min_lr(0.1f);
  EXPECT_FLOAT_EQ(LearningRate(solver, 50, 0), static_cast<float>(0.1 + 0.4 * std::pow(0.5, 0.75)));
  EXPECT_FLOAT_EQ(LearningRate(solver, 100, 0), 0.1f);
}

TEST(MomentumTest, FollowsItsPolicy) {
  caffe::SolverParameter solver = Policy("fixed");
  solver.set_momentum(0.5f);
  EXPECT_EQ(Momentum(solver, 70, 0.1f), 0.5f);
  solver.set_momentum_policy("poly");
  solver.set_momentum_power(2);
  EXPECT_FLOAT_EQ(Momentum(solver, 0, 0.1f), 0.5f);
  EXPECT_FLOAT_EQ(Momentum(solver, 50, 0.1f), 0.5f + 0.49f / 4);
  solver.set_momentum_policy("opt");
  EXPECT_FLOAT_EQ(Momentum(solver, 50, 0.25f), 0.5625f);
  EXPECT_FLOAT_EQ(Momentum(solver, 50, 0), 1);
  solver.set_max_momentum(0.5f);
  EXPECT_FLOAT_EQ(Momentum(solver, 50, 0.25f), 0.5f);
}

TEST(DivergenceAdviceTest, NamesTheFieldByWhichTheSolverClips) {
  caffe::SolverParameter solver;
  EXPECT_EQ(DivergenceAdvice(solver), "Try a lower base_lr or clip_gradients");
  solver.set_clip_gradients(5);
  EXPECT_EQ(DivergenceAdvice(solver), "Try a lower base_lr or a lower clip_gradients");
  solver.clear_clip_gradients();
  solver.set_clip_value(0.1f);
  EXPECT_EQ(DivergenceAdvice(solver), "Try a lower base_lr or a lower clip_value");
}

TEST(PlaceInScheduleTest, SaysTheRateAndWhereItIs) {
  caffe::SolverParameter solver = Policy("step");
  solver.set_base_lr(0.5f);
  solver.set_max_iter(100);
  solver.set_stepsize(30);
  solver.set_gamma(0.5f);
  EXPECT_EQ(PlaceInSchedule(solver, 65, 0),
            "The learning rate is 0.125, after 2 of 3 steps from base_lr 0.5");
  solver.set_warmup_iter(20);
  solver.set_warmup_start_lr(0);
  EXPECT_EQ(PlaceInSchedule(solver, 10, 0),
            "The learning rate is 0.25, in the warm-up (iteration 10 of 20)");
  solver.set_lr_policy("fixed");
  EXPECT_EQ(PlaceInSchedule(solver, 65, 0),
            "The learning rate is 0.5 (lr_policy \"fixed\", "
            "base_lr 0.5)");
}

TEST(MomentumTest, ChangesAtItsSteps) {
  caffe::SolverParameter solver = Policy("fixed");
  solver.set_momentum(0.5f);
  solver.set_momentum_policy("multistep");
  for (const auto& [step, value] : {std::pair(10, 0.75f), {20, 0.9f}}) {
    solver.add_momentum_stepvalue(step);
    solver.add_momentum_value(value);
  }
  EXPECT_EQ(Momentum(solver, 9, 0.1f), 0.5f);
  EXPECT_EQ(Momentum(solver, 10, 0.1f), 0.75f);
  EXPECT_EQ(Momentum(solver, 19, 0.1f), 0.75f);
  EXPECT_EQ(Momentum(solver, 20, 0.1f), 0.9f);
}

TEST(WeightDecayTest, FollowsItsPolicy) {
  caffe::SolverParameter solver = Policy("fixed");
  solver.set_weight_decay(0.5f);
  EXPECT_EQ(WeightDecay(solver, 70), 0.5f);
  solver.set_weight_decay_policy("poly");
  EXPECT_FLOAT_EQ(WeightDecay(solver, 50), 0.25f);
  solver.set_max_weight_decay(1.5f);
  solver.set_weight_decay_power(2);
  EXPECT_FLOAT_EQ(WeightDecay(solver, 50), 0.75f);
}

}  // namespace
}  // namespace trainer
