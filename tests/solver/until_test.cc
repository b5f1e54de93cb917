// Runs that end at SolverOptions::until and are continued later.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "rows_run.h"
#include "small_run.h"
#include "support/error_of.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/solver_state.h"

namespace trainer {
namespace {

using testing::Contains;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::Pair;

// The learning rate depends on max_iter.
constexpr char kUntilFields[] =
    "base_lr: 0.1 lr_policy: \"poly\" power: 2 momentum: 0.9 display: 1 average_loss: 3 "
    "max_iter: 20 test_interval: 4 test_iter: 2 snapshot_after_train: false ";

std::vector<float> Last(const std::vector<float>& all, size_t count) {
  EXPECT_GE(all.size(), count);
  return {all.end() - static_cast<std::ptrdiff_t>(std::min(count, all.size())), all.end()};
}

// Returns the state at iteration 20 without the path of its weights, which names the folder.
std::string FinalState(const SmallRun& run) {
  caffe::SolverState state = ReadState(run.PathOf("s_iter_20.solverstate")).state;
  state.clear_learned_net();
  state.clear_file_bytes();
  state.clear_crc32c();
  return state.SerializeAsString();
}

// Iteration 7 has no test of its own, and iteration 8 has one.
class UntilTest : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(At, UntilTest, testing::Values(7, 8),
                         [](const auto& until) { return Join(until.param); });

TEST_P(UntilTest, ARunThatEndsThereAndItsRestAreOneRunBitForBit) {
  SmallRun whole(kUntilFields);
  EXPECT_EQ(whole.Solve(), SolveResult::kFinished);
  whole.solver->Snapshot();

  SolverOptions options;
  options.until = GetParam();
  SmallRun first(kUntilFields, SmallNet(), options);
  EXPECT_EQ(first.Solve(), SolveResult::kPaused);
  EXPECT_EQ(first.solver->iter(), GetParam());
  EXPECT_THAT(first.observer.snapshots, Contains(GetParam()))
      << "also without snapshot_after_train";
  EXPECT_EQ(first.observer.tests.size(), 6u) << "0, 4 and the end, two outputs each";

  options.until = 0;
  options.snapshot = first.PathOf(Join("s_iter_", GetParam(), ".solverstate"));
  SmallRun rest(kUntilFields, SmallNet(), options, first.folder_path);
  EXPECT_EQ(rest.Solve(), SolveResult::kFinished);
  rest.solver->Snapshot();
  EXPECT_THAT(rest.Weights(), ElementsAreArray(whole.Weights()));
  EXPECT_EQ(FinalState(rest), FinalState(whole));
  const std::vector<float> losses = rest.observer.losses, rates = rest.observer.hyper;
  EXPECT_EQ(losses.size(), static_cast<size_t>(21 - GetParam()));
  EXPECT_THAT(losses, ElementsAreArray(Last(whole.observer.losses, losses.size())));
  EXPECT_THAT(rates, ElementsAreArray(Last(whole.observer.hyper, rates.size())));
  EXPECT_THAT(rest.observer.tests,
              ElementsAreArray(Last(whole.observer.tests, rest.observer.tests.size())));
}

TEST(UntilAgainTest, ARunThatIsThereAlreadyOnlyTests) {
  SolverOptions options;
  options.until = 8;
  SmallRun first(kUntilFields, SmallNet(), options);
  first.Solve();
  options.snapshot = first.PathOf("s_iter_8.solverstate");
  SmallRun again(kUntilFields, SmallNet(), options, first.folder_path);
  EXPECT_EQ(again.Solve(), SolveResult::kPaused);
  EXPECT_EQ(again.solver->iter(), 8);
  EXPECT_THAT(again.observer.tests, ElementsAreArray(Last(first.observer.tests, 2)));
  EXPECT_TRUE(again.observer.snapshots.empty());
}

TEST(UntilAgainTest, AnIterationFromMaxIterOnChangesNothing) {
  SolverOptions options;
  options.until = 20;
  SmallRun run(kUntilFields, SmallNet(), options);
  EXPECT_EQ(run.Solve(), SolveResult::kFinished);
  EXPECT_TRUE(run.observer.snapshots.empty()) << "snapshot_after_train is false";
}

// The loss at the end is the mean of the last three, whichever iterations are displayed.
TEST(UntilAgainTest, TheLossAtTheEndIsThatOfTheLastIteration) {
  const std::string fields = "base_lr: 0.1 lr_policy: \"fixed\" momentum: 0.9 max_iter: 20 ";
  SolverOptions options;
  options.until = 7;
  SmallRun each(fields + "display: 1 ", SmallNet(), options);
  each.Solve();
  const std::vector<float> losses = each.observer.losses;
  ASSERT_EQ(losses.size(), 8u) << "the last one follows the last update";
  EXPECT_EQ(each.observer.end.loss, losses.back());
  const float mean = (losses[4] + losses[5] + losses[6]) / 3;
  for (const std::string display : {"display: 0 ", "display: 5 "}) {
    SolverOptions resumed = options;
    SmallRun run(fields + "average_loss: 3 " + display, SmallNet(), options);
    run.Solve();
    EXPECT_TRUE(run.observer.end.stopped_early);
    EXPECT_FLOAT_EQ(run.observer.end.loss.value_or(0), mean) << display;
    resumed.snapshot = run.PathOf("s_iter_7.solverstate");
    SmallRun again(fields + "average_loss: 3 " + display, SmallNet(), resumed, run.folder_path);
    again.Solve();
    EXPECT_FLOAT_EQ(again.observer.end.loss.value_or(0), mean) << display << "without a step";
  }
}

TEST(UntilAgainTest, RefusesAStrategyWhoseRunsCannotBeContinuedExactly) {
  TRAINER_CPU_ONLY("ranks on a GPU need a communicator of their own");
  const RowsFolder folder;
  const SolverSpec spec =
      folder.Spec(SmallNet(), "base_lr: 0.1 max_iter: 9 random_seed: 3 strategy: 'gossip' ");
  RunRanks(2, true, "", [&](SolverOptions options, ThreadGroup&) {
    const auto device = MakeTestDevice(1);
    RecordingObserver observer;
    options.until = 3;
    EXPECT_THAT(ErrorOf([&] { Solver(spec, options, *device, observer); }),
                Pair(ErrorCode::kUsage,
                     HasSubstr("--until: strategy 'gossip' depends on the timing of the ranks")));
  });
}

}  // namespace
}  // namespace trainer
