// --resume=auto: one command starts a run, resumes it, and does nothing once it is finished.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job.h"

namespace trainer {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kResumeAuto[] = "--resume=auto";

TEST(AutoResumeTest, OneCommandStartsGoesOnAndEnds) {
  Job job;
  job.Write();
  const Outcome whole = job.Train();
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const std::string expected = ReadText(job.folder() / "snap_iter_20.caffemodel");
  for (const std::string& file : job.Files("snap_iter_")) {
    std::filesystem::remove(job.folder() / file);
  }
  const Outcome first = job.Train({kResumeAuto, "--set=max_iter=10"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.err, HasSubstr("No snapshot of 'snap' exists yet"));
  const Outcome second = job.Train({kResumeAuto});
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_THAT(second.err, HasSubstr("Resuming from snap_iter_10.solverstate"));
  EXPECT_EQ(ReadText(job.folder() / "snap_iter_20.caffemodel"), expected);
  const Outcome third = job.Train({kResumeAuto});
  EXPECT_EQ(third.exit_code, 0) << third.err;
  EXPECT_THAT(third.err, HasSubstr("Already at iteration 20 of 20: the run is finished, nothing "
                                   "to do"));
  EXPECT_THAT(third.err, Not(HasSubstr("Starting Optimization")));
}

TEST(AutoResumeTest, PassesOverADamagedSnapshotAndSaysSo) {
  const Job job;
  job.Write();
  ASSERT_EQ(job.Train().exit_code, 0);
  std::filesystem::resize_file(job.folder() / "snap_iter_20.solverstate", 40);
  const Outcome outcome = job.Train({kResumeAuto});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("The snapshot of iteration 20 cannot be used"));
  EXPECT_THAT(outcome.err, HasSubstr("Resuming from snap_iter_10.solverstate"));
}

// A kill between writing the weights and the state leaves such files.
TEST(AutoResumeTest, WeightsWithoutAStateArePassedOverAndReplaced) {
  const Job job;
  job.Write();
  ASSERT_EQ(job.Train().exit_code, 0);
  const std::string weights = job.folder() / "snap_iter_20.caffemodel";
  const std::string expected = ReadText(weights);
  std::filesystem::remove(job.folder() / "snap_iter_20.solverstate");
  WriteText(weights, "another's");
  const Outcome outcome = job.Train({kResumeAuto});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("snap_iter_20.caffemodel has no solver state in the same "
                                     "folder"));
  EXPECT_THAT(outcome.err, HasSubstr("The newest complete snapshot is from iteration 10"));
  EXPECT_THAT(outcome.err, HasSubstr("Resuming from snap_iter_10.solverstate"));
  EXPECT_EQ(ReadText(weights), expected);
}

TEST(AutoResumeTest, DoesNotStartAgainWhenNoneIsUsable) {
  const Job job;
  job.Write();
  ASSERT_EQ(job.Train().exit_code, 0);
  for (const char* name : {"snap_iter_10.solverstate", "snap_iter_20.solverstate"}) {
    std::filesystem::resize_file(job.folder() / name, 40);
  }
  ExpectRefused(job, job.Train({kResumeAuto}), 83, "none of the 2 snapshots of 'snap' can be used");
}

}  // namespace
}  // namespace trainer
