// The last snapshot of a run when its folder refuses it: one process or several ranks try it while
// there is time, then store it elsewhere.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rank_job.h"
#include "support/stub_commands.h"
#include "trainer/checkpoint/solver_state.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

// A run that stores its snapshots in their own folder.
class LastSnapshotTest : public LongRankJob {
 protected:
  LastSnapshotTest() {
    std::filesystem::create_directory(job_.folder() / "gone");
    job_.solver = Edited(job_.solver, "\"snap\"", "\"gone/snap\"");
    job_.environment = HastySlurmJob(job_.folder());
    job_.Write();
  }

  std::string Folder() const { return job_.folder() / "gone"; }
  void RemoveFolder() const { std::filesystem::remove_all(Folder()); }
};

TEST_F(LastSnapshotTest, IsStoredInTheRescueFolderAndTheMessageSaysHowToResume) {
  std::filesystem::create_directory(job_.folder() / "saved");
  RunningProgram program(job_.TrainCommand({"--resume=auto", "--rescue_dir=saved"}),
                         job_.options());
  program.WaitForLine("Iteration 10");
  RemoveFolder();
  program.Signal(SIGTERM);
  const Outcome outcome = program.Wait();
  EXPECT_EQ(outcome.exit_code, 74) << outcome.err;
  ASSERT_THAT(outcome.Errors(), SizeIs(1));
  const std::string error = outcome.Errors()[0];
  EXPECT_THAT(error, AllOf(HasSubstr("the last snapshot, of iteration "),
                           HasSubstr("although its folder was writable at the start of the run"),
                           HasSubstr("gone/snap_iter_"), HasSubstr("It is stored as "),
                           HasSubstr(" train --solver=solver.prototxt --rescue_dir=saved "
                                     "--snapshot=")));
  EXPECT_THAT(outcome.err, Not(HasSubstr("Optimization Done.")));
  const std::string state = error.substr(error.rfind("--snapshot=") + 11);
  const int iter = ReadState(state).state.iter();
  EXPECT_GE(iter, 10);
  std::filesystem::create_directory(Folder());
  const std::vector<std::string> ended = {"--set", "max_iter=" + std::to_string(iter)};
  const Outcome resumed = job_.Train({"--snapshot=" + state, ended[0], ended[1]});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("Resuming from " + state));
  const Outcome automatic = job_.Train({"--resume=auto", "--rescue_dir=saved", ended[0], ended[1]});
  EXPECT_EQ(automatic.exit_code, 0) << automatic.err;
  EXPECT_THAT(automatic.err, HasSubstr("--resume=auto: the newest good snapshot"));
  EXPECT_THAT(automatic.err, HasSubstr(", " + state));
}

TEST_F(LastSnapshotTest, WithoutARescueFolderEndsAllRanksWith74AndOneMessage) {
  const auto program = Start({"--ranks=2"});
  RemoveFolder();
  program->Signal(SIGTERM);
  const Outcome outcome = program->Wait();
  EXPECT_EQ(outcome.exit_code, 74) << outcome.err;
  EXPECT_THAT(outcome.Errors(),
              ElementsAre(AllOf(HasSubstr("gone/snap_iter_"), HasSubstr("cannot create"),
                                HasSubstr("(--rescue_dir, $SLURM_TMPDIR, $TMPDIR)"))));
  ExpectAllGone();
}

// Rank 0 does not know how much time the other rank's signal leaves.
TEST_F(LastSnapshotTest, IsTriedForAMinuteUntilTheFolderIsBack) {
  const auto program = Start({"--ranks=2"});
  RemoveFolder();
  kill(processes_[1], SIGTERM);
  EXPECT_THAT(program->WaitForLine("The last snapshot, of iteration "),
              AllOf(HasSubstr(" s (the end of this job is unknown), then the run exits without "
                              "it; set another folder with --rescue_dir")));
  std::filesystem::create_directory(Folder());
  const Outcome outcome = program->Wait();
  EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
  EXPECT_THAT(outcome.Errors(), IsEmpty());
  EXPECT_FALSE(std::filesystem::is_empty(Folder()));
  ExpectAllGone();
}

}  // namespace
}  // namespace trainer
