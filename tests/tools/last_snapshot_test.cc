// The snapshot with which a run ends, where it cannot be written: one message and its exit code,
// from one process as from several ranks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rank_job.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// A run whose snapshots go to a folder of their own.
class LastSnapshotTest : public LongRankJob {
 protected:
  LastSnapshotTest() {
    std::filesystem::create_directory(job_.folder() / "gone");
    job_.solver = Edited(job_.solver, "\"snap\"", "\"gone/snap\"");
    job_.Write();
  }

  void RemoveFolder() const { std::filesystem::remove_all(job_.folder() / "gone"); }

  void ExpectOneMessage(const Outcome& outcome) const {
    EXPECT_EQ(outcome.exit_code, 73) << outcome.err;
    EXPECT_THAT(outcome.Errors(),
                ElementsAre(AllOf(HasSubstr("gone/snap_iter_"), HasSubstr("cannot create"),
                                  HasSubstr("create the folder first"))));
    ExpectAllGone();
  }
};

TEST_F(LastSnapshotTest, OfAFolderThatVanishedEndsARunWith73) {
  Program program(job_.TrainCommand(), job_.options());
  program.WaitForLine("Iteration 10");
  RemoveFolder();
  program.Signal(SIGTERM);
  ExpectOneMessage(program.Wait());
}

TEST_F(LastSnapshotTest, OfAFolderThatVanishedEndsAllRanksWith73AndOneMessage) {
  const auto program = Start({"--ranks=2"});
  RemoveFolder();
  program->Signal(SIGTERM);
  ExpectOneMessage(program->Wait());
}

TEST_F(LastSnapshotTest, OfAFolderThatVanishedEndsAllRanksWhenOnlyTheSecondIsAskedToStop) {
  const auto program = Start({"--ranks=2"});
  RemoveFolder();
  kill(processes_[1], SIGTERM);
  ExpectOneMessage(program->Wait());
}

}  // namespace
}  // namespace trainer
