// Short runs: --overfit, --quick, --limit, and runs whose length is in epochs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "in_process.h"
#include "job.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class QuickLooksTest : public testing::Test {
 protected:
  QuickLooksTest() { job_.Write(); }
  std::string Read(const std::string& name) const { return ReadText(job_.folder() / name); }

  Job job_;
};

TEST_F(QuickLooksTest, OverfitEndsWithBothLossesAndLeavesNothing) {
  const std::vector<std::string> before = job_.folder().Names();
  const Outcome outcome = job_.Train({"--overfit=2", "--base_lr=0.1"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, ContainsRegex("learned: loss 2\\.[0-9]+ -> 0\\.[0-9]+, in [0-9]+ "
                                         "iterations"));
  EXPECT_THAT(outcome.err, HasSubstr("Test net output #0: accuracy = 1"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("Snapshotting")));
  EXPECT_EQ(job_.folder().Names(), before);
}

TEST_F(QuickLooksTest, OverfitOfANetThatCannotLearnNamesTheCause) {
  ExpectRefused(job_, job_.Train({"--overfit=1", "--base_lr=0"}), 84, "not learned: loss 2.",
                "Likely cause: nothing is trained: no weight changed. base_lr is 0");
  job_.net = Edited(job_.net, "inner_product_param",
                    "param { lr_mult: 0 } param { lr_mult: 0 }\n"
                    "inner_product_param");
  ExpectRefused(job_, job_.Train({"--overfit=1"}), 84, "not learned: loss 2.",
                "nothing is trained: no weight changed");
}

TEST_F(QuickLooksTest, OverfitRefusesWhatDoesNotFit) {
  const auto refused = [&](const std::vector<std::string>& flags, const std::string& text) {
    ExpectRefused(job_, job_.Train(flags), 64, text);
  };
  refused({"--overfit=2", "--quick"}, "--quick and --overfit cannot both be given");
  refused({"--overfit=2", "--resume"}, "--overfit and --resume cannot both be given");
  refused({"--quick", "--snapshot=x.solverstate"}, "--quick and --snapshot cannot both be given");
  refused({"--overfit=2", "--limit=3"}, "--overfit and --limit cannot both be given");
  refused({"--overfit=2", "--batch=auto"}, "--overfit and --batch=auto cannot both be given");
  const Outcome local = job_.TrainAsProcess({"--overfit=2", "--ranks=2", "--strategy=local"});
  EXPECT_EQ(local.exit_code, 64) << local.err;
  EXPECT_THAT(local.Errors(), ElementsAre(HasSubstr("--overfit and strategy 'local': each rank has "
                                                    "its own loss")));
}

TEST_F(QuickLooksTest, OverfitOfTwoRanksEqualsTheSameOfTwoVirtualRanks) {
  const auto verdict = [](const std::string& log) {
    const size_t begin = log.find("learned: loss");
    return log.substr(begin, log.find('\n', begin) - begin);
  };
  job_.solver += "virtual_ranks: 2\n";
  job_.Write();
  const std::vector<std::string> flags = {"--overfit=1", "--base_lr=0.1"};
  const Outcome one = job_.Train(flags);
  ASSERT_EQ(one.exit_code, 0) << one.err;
  std::vector<std::string> of_two = flags;
  of_two.emplace_back("--ranks=2");
  const Outcome two = job_.TrainAsProcess(of_two);
  ASSERT_EQ(two.exit_code, 0) << two.err;
  EXPECT_EQ(verdict(one.err), verdict(two.err));
}

TEST_F(QuickLooksTest, QuickTriesAllPartsAndLeavesNothing) {
  job_.solver += "ema_decay: 0.5 keep_best: 1\n";
  job_.Write();
  const std::vector<std::string> before = job_.folder().Names();
  const Outcome outcome = job_.Train({"--quick", "--run=record", "--set", "display=1"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("Iteration 0 ("), HasSubstr("Iteration 1, Testing net (#0)"),
                    ContainsRegex("quick: one iteration, one test batch and a snapshot "
                                  "of [0-9.]+ KiB, which was written, read back and "
                                  "removed: the run works")));
  EXPECT_EQ(job_.folder().Names(), before);
}

TEST_F(QuickLooksTest, QuickOfSeveralRanksLeavesNothing) {
  const std::vector<std::string> before = job_.folder().Names();
  const Outcome outcome = job_.TrainAsProcess({"--quick", "--ranks=2", "--log_all_ranks"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("read back and removed: the run works"));
  EXPECT_EQ(job_.folder().Names(), before);
}

TEST_F(QuickLooksTest, QuickTouchesNoSnapshotOfTheRun) {
  ASSERT_EQ(job_.Train().exit_code, 0);
  const std::vector<std::string> before = job_.folder().Names();
  const std::string state = Read("snap_iter_20.solverstate");
  const Outcome outcome = job_.Train({"--quick"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, Not(HasSubstr("already has snapshots")));
  EXPECT_EQ(job_.folder().Names(), before);
  EXPECT_EQ(Read("snap_iter_20.solverstate"), state);
}

TEST_F(QuickLooksTest, QuickFindsAFolderThatIsMissing) {
  ExpectRefused(job_, job_.Train({"--quick", "--set", "snapshot_prefix=missing/snap"}), 73,
                job_.folder() / "missing", "the folder for snapshots does not exist");
}

TEST_F(QuickLooksTest, TheLimitIsWrittenIntoTheResolvedSolver) {
  const Outcome outcome = job_.Train({"--limit=0.4"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("--limit=0.4: layer 'digits' reads the first 40 of 100"));
  EXPECT_THAT(Read("snap_resolved.prototxt"), HasSubstr("limit: 40"));
}

class EpochRunTest : public QuickLooksTest {
 protected:
  EpochRunTest() {
    job_.solver = Edited(job_.solver, "max_iter: 20",
                         "max_epoch: 3 snapshot_epoch: 1 test_interval_epoch: 1.5");
    job_.solver = Edited(job_.solver, "snapshot: 10\n", "");
    job_.solver = Edited(job_.solver, "test_interval: 10\n", "");
    job_.Write();
  }
};

TEST_F(EpochRunTest, BothLengthsAreShownAndTheResolvedOneIsWritten) {
  const Outcome outcome = job_.Train();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err,
              HasSubstr("Epochs: an epoch is 7 iterations (100 records, 16 per iteration): "
                        "max_epoch 3 is max_iter 21, test_interval_epoch 1.5 is test_interval 11, "
                        "snapshot_epoch 1 is snapshot 7"));
  EXPECT_THAT(
      job_.Files("snap_iter_"),
      ElementsAre("snap_iter_14.caffemodel", "snap_iter_14.solverstate", "snap_iter_21.caffemodel",
                  "snap_iter_21.solverstate", "snap_iter_7.caffemodel", "snap_iter_7.solverstate"));
  EXPECT_THAT(Read("snap_resolved.prototxt"),
              AllOf(HasSubstr("max_iter: 21"), Not(HasSubstr("epoch"))));
  const std::string expected = Read("snap_iter_21.caffemodel");
  std::filesystem::remove(job_.folder() / "snap_iter_21.caffemodel");
  std::filesystem::remove(job_.folder() / "snap_iter_21.solverstate");
  const Outcome resumed = job_.Train({"--resume"});
  EXPECT_THAT(resumed.err, HasSubstr("Resuming from snap_iter_14.solverstate"));
  EXPECT_EQ(Read("snap_iter_21.caffemodel"), expected);
  EXPECT_THAT(job_.Train({"--resume"}).err, HasSubstr("Already at iteration 21 of 21"));
}

TEST_F(EpochRunTest, RanksShareAnEpoch) {
  const Outcome four = job_.TrainAsProcess({"--ranks=4"});
  EXPECT_EQ(four.exit_code, 0) << four.err;
  EXPECT_THAT(four.err, HasSubstr("an epoch is 2 iterations (100 records, 64 per iteration): "
                                  "max_epoch 3 is max_iter 6"));
  const Outcome global = job_.TrainAsProcess({"--ranks=4", "--global_batch"});
  EXPECT_EQ(global.exit_code, 0) << global.err;
  EXPECT_THAT(global.err, HasSubstr("an epoch is 7 iterations (100 records, 16 per iteration)"));
}

TEST_F(EpochRunTest, CheckShowsTheLength) {
  const Outcome outcome = RunHere({"check", "--solver=solver.prototxt"}, job_.options());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("an epoch is 7 iterations"));
  EXPECT_THAT(outcome.out, HasSubstr("3 of 61.4 KiB as snap_iter_"));
}

TEST_F(EpochRunTest, TheFlagEpochsReplacesTheFieldOfTheFile) {
  const Outcome outcome = job_.Train({"--epochs=1"});
  EXPECT_THAT(outcome.err, HasSubstr("max_epoch 1 is max_iter 7"));
  const Outcome iterations = job_.Train({"--max_iter=5"});
  EXPECT_THAT(iterations.err, HasSubstr("Iteration 5, Testing net (#0)"));
}

// The search takes the earlier run's batch of 50, so an epoch has 2 iterations.
TEST_F(EpochRunTest, TheLengthFollowsTheBestBatch) {
  ASSERT_EQ(job_.Train({"--batch=50", "--epochs=1"}).exit_code, 0);
  const Outcome outcome = job_.Train({"--batch=auto", "--resume"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("and max_epoch 3 are unchanged"));
  EXPECT_THAT(outcome.err, HasSubstr("an epoch is 2 iterations (100 records, 50 per iteration): "
                                     "max_epoch 3 is max_iter 6"));
  EXPECT_THAT(job_.Files("snap_iter_6.caffemodel"), Not(IsEmpty()));
}

// With the file's batch of 16, an epoch has 7 iterations. With the run's smaller batch, the run is
// not finished after 14 iterations.
TEST_F(EpochRunTest, AnAutomaticBatchResumesByItsOwnEpochs) {
  job_.solver = Edited(job_.solver, "max_epoch: 3", "max_epoch: 2");
  ASSERT_EQ(job_.Train({"--batch=5", "--epochs=1"}).exit_code, 0);
  const Outcome outcome = job_.Train({"--batch=auto", "--resume"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, Not(HasSubstr("nothing to do")));
  EXPECT_THAT(job_.Files("snap_iter_40.caffemodel"), Not(IsEmpty()));
}

TEST_F(EpochRunTest, AQuickLookStaysQuickWithAnAutomaticBatch) {
  const std::vector<std::string> before = job_.folder().Names();
  const Outcome outcome = job_.Train({"--quick", "--batch=auto"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("quick: one iteration"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("Iteration 2")));
  EXPECT_EQ(job_.folder().Names(), before);
}

TEST_F(QuickLooksTest, TheLinksAreStartsOfFurtherRuns) {
  job_.solver += "keep_best: 1\n";
  ASSERT_EQ(job_.Train().exit_code, 0);
  const Outcome resumed = job_.Train({"--resume=snap_last.solverstate", "--max_iter=25"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("Resuming from snap_last.solverstate"));
  EXPECT_THAT(job_.Files("snap_iter_25.caffemodel"), Not(IsEmpty()));
  const Outcome tuned = job_.Train({"--weights=snap_best.caffemodel", "--max_iter=1"});
  EXPECT_EQ(tuned.exit_code, 0) << tuned.err;
}

}  // namespace
}  // namespace trainer
