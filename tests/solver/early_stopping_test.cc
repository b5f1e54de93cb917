// patience: a run ends after this many tests without an improvement.

#include "early_stopping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "small_run.h"
#include "support/error_of.h"

namespace trainer {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kPatienceFields[] =
    "base_lr: 0 lr_policy: \"fixed\" max_iter: 20 test_interval: 2 test_iter: 1 ";

// Passes test results to EarlyStopping directly, without training.
class PatienceTest : public testing::Test {
 protected:
  std::unique_ptr<EarlyStopping> Make(const std::string& fields) {
    run_ = std::make_unique<SmallRun>(kPatienceFields + fields);
    return std::make_unique<EarlyStopping>(run_->spec,
                                           std::vector<std::string>{"accuracy", "loss"});
  }
  // Reports a test and returns whether the run would end.
  static bool EndsAt(EarlyStopping& patience, int iter, float accuracy, bool interrupted = false) {
    const std::vector<ReportedValue> outputs = {{"accuracy", accuracy, 0}, {"loss", -accuracy, 1}};
    TestReport report;
    report.iter = iter;
    report.outputs = outputs;
    report.interrupted = interrupted;
    patience.NoteTest(report);
    return patience.IsFinished();
  }

  std::unique_ptr<SmallRun> run_;
};

TEST_F(PatienceTest, EndsAfterSoManyTestsWithoutABetterOne) {
  const auto patience = Make("patience: 2 ");
  EXPECT_FALSE(EndsAt(*patience, 0, 0.1f));
  EXPECT_FALSE(EndsAt(*patience, 2, 0.1f)) << "an equal one is no better one";
  EXPECT_FALSE(EndsAt(*patience, 4, 0.5f));
  EXPECT_FALSE(EndsAt(*patience, 6, 0.4f));
  EXPECT_TRUE(EndsAt(*patience, 8, 0.45f));
  EXPECT_EQ(patience->Describe(),
            "The last 2 tests did not improve accuracy (patience: 2): the best was 0.5 at "
            "iteration 4, the last 0.45 at iteration 8. The run stops here");
}

TEST_F(PatienceTest, OfALossTheLowestIsTheBest) {
  const auto patience = Make("patience: 1 best_output: \"loss\" ");
  EXPECT_FALSE(EndsAt(*patience, 0, 0.1f));  // a loss of -0.1
  EXPECT_FALSE(EndsAt(*patience, 2, 0.2f));
  EXPECT_TRUE(EndsAt(*patience, 4, 0.1f));
}

TEST_F(PatienceTest, AResumedRunCountsTheTestsOfItsFormerSelves) {
  const auto before = Make("patience: 3 ");
  EndsAt(*before, 2, 0.5f);
  EndsAt(*before, 4, 0.4f);
  caffe::SolverState state;
  before->ToState(&state);
  const auto after = Make("patience: 3 ");
  after->Resume(state);
  EXPECT_FALSE(EndsAt(*after, 6, 0.4f));
  EXPECT_TRUE(EndsAt(*after, 8, 0.4f));
}

TEST_F(PatienceTest, TheListOfTheBestSnapshotsNamesItsTestOnce) {
  const auto patience = Make("patience: 3 ");
  EndsAt(*patience, 2, 0.5f);
  caffe::SolverState state;
  caffe::ScoredSnapshot* const kept = state.add_best();
  kept->set_iter(2);
  kept->set_value(0.5f);
  patience->ToState(&state);
  EXPECT_EQ(state.best_size(), 1);
}

TEST_F(PatienceTest, WithAMinDeltaSmallStepsAreNoImprovement) {
  const auto patience = Make("patience: 2 min_delta: 0.1 ");
  EXPECT_FALSE(EndsAt(*patience, 2, 0.5f));
  EXPECT_FALSE(EndsAt(*patience, 4, 0.55f));
  EXPECT_FALSE(EndsAt(*patience, 6, 0.65f)) << "0.15 better than 0.5, with which it is compared";
  EXPECT_FALSE(EndsAt(*patience, 8, 0.7f));
  EXPECT_TRUE(EndsAt(*patience, 10, 0.74f));
  EXPECT_EQ(patience->BestIter(), 10) << "the best test is the best, if only by a little";
  EXPECT_EQ(patience->Describe(),
            "The last 2 tests did not improve accuracy by more than 0.1 (patience: 2): the best "
            "was 0.74 at iteration 10, the last 0.74 at iteration 10. The run stops here");
}

TEST_F(PatienceTest, AResumedRunComparesWithTheSameImprovement) {
  const auto before = Make("patience: 2 min_delta: 0.1 ");
  EndsAt(*before, 2, 0.5f);
  EndsAt(*before, 4, 0.55f);
  caffe::SolverState state;
  before->ToState(&state);
  EXPECT_EQ(state.improved().iter(), 2);
  const auto after = Make("patience: 2 min_delta: 0.1 ");
  after->Resume(state);
  EXPECT_EQ(after->BestIter(), 4);
  EXPECT_TRUE(EndsAt(*after, 6, 0.58f)) << "not 0.1 better than 0.5, although than any before";
  caffe::SolverState plain;
  Make("patience: 2 ")->ToState(&plain);
  EXPECT_FALSE(plain.has_improved());
}

TEST_F(PatienceTest, WhatIsNotANumberIsNeverTheBestAndInterruptedTestsDoNotCount) {
  const auto patience = Make("patience: 2 ");
  EXPECT_FALSE(EndsAt(*patience, 0, NAN));
  EXPECT_FALSE(EndsAt(*patience, 2, 0.3f));
  EXPECT_FALSE(EndsAt(*patience, 4, NAN));
  EXPECT_FALSE(EndsAt(*patience, 6, 0.9f, true));
  EXPECT_TRUE(EndsAt(*patience, 6, 0.2f));
}

// Whole runs that learn nothing: the data are constant and the learning rate is 0.
std::string ConstantNet() {
  std::string net = SmallNet();
  const std::string filler = "data_filler { type: \"gaussian\" }";
  return net.replace(net.find(filler), filler.size(),
                     "data_filler { type: \"constant\" value: 0.5 }");
}

TEST(PatienceOfRunTest, EndsTheRunAsFinishedWithASnapshotAndANote) {
  SmallRun run(std::string(kPatienceFields) + "patience: 3 ", ConstantNet());
  EXPECT_EQ(run.Solve(), SolveResult::kFinished);
  EXPECT_EQ(run.solver->iter(), 8) << "the test at iteration 0 is never the best";
  EXPECT_THAT(run.observer.snapshots, ElementsAre(8));
  EXPECT_EQ(run.observer.tests.size(), 10u) << "accuracy and loss at 0, 2, 4, 6, 8, not twice";
  EXPECT_THAT(run.observer.notes, Contains(HasSubstr("at iteration 2, the last ")));
}

TEST(PatienceOfRunTest, AResumedRunEndsWhereOneWithoutInterruptionDoes) {
  const std::string fields = std::string(kPatienceFields) + "patience: 4 ";
  SmallRun first(fields, ConstantNet());
  first.spec.proto.set_max_iter(5);
  first.Solve();
  SolverOptions options;
  options.snapshot = first.PathOf("s_iter_5.solverstate");
  SmallRun second(fields, ConstantNet(), options, first.folder_path);
  EXPECT_EQ(second.Solve(), SolveResult::kFinished);
  EXPECT_EQ(second.solver->iter(), 10);
}

TEST(PatienceOfRunTest, WithoutItTheRunGoesOnToTheEnd) {
  SmallRun run(kPatienceFields, ConstantNet());
  run.Solve();
  EXPECT_EQ(run.solver->iter(), 20);
  EXPECT_THAT(run.observer.notes, IsEmpty());
}

TEST(PatienceOfRunTest, RefusesToCompareWithoutTests) {
  const auto [code, text] =
      ErrorOf([] { SmallRun run("base_lr: 0.1 lr_policy: \"fixed\" max_iter: 10 patience: 1 "); });
  EXPECT_EQ(code, ErrorCode::kConfig);
  EXPECT_THAT(text, HasSubstr("patience compares tests"));
}

}  // namespace
}  // namespace trainer
