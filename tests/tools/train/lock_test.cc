// Two runs with one snapshot_prefix, and runs in a folder with old snapshots.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "check_job.h"
#include "in_process.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class LockTestLock : public testing::Test {
 protected:
  LockTestLock() {
    first_ = job_.solver;
    job_.solver = Edited(job_.solver, "max_iter: 20", "max_iter: 100000000");
    job_.solver = Edited(job_.solver, "display: 5", "display: 1000");
    job_.solver = Edited(job_.solver, "snapshot: 10", "snapshot: 0");
    job_.solver = Edited(job_.solver, "test_interval: 10", "test_interval: 100000000");
    job_.Write();
  }

  CheckJob job_;
  std::string first_;  // the solver of a short run
};

TEST_F(LockTestLock, ASecondRunOfOnePrefixIsRefusedUntilTheFirstEnds) {
  RunningProgram first(job_.TrainCommand(), job_.options());
  first.WaitForLine("Iteration 0 (");
  EXPECT_THAT(job_.Files("."), ElementsAre(".snap.lock"));
  const Outcome second = RunHere(job_.TrainCommand(), job_.options());
  EXPECT_EQ(second.exit_code, 73) << second.err;
  EXPECT_THAT(second.Errors(),
              ElementsAre(AllOf(HasSubstr("the snapshots of 'snap' belong to another"),
                                HasSubstr("process " + std::to_string(first.pid())))));
  const Outcome check = job_.Check();
  EXPECT_EQ(check.exit_code, 73) << check.out;
  EXPECT_THAT(job_.Files("."), ElementsAre(".snap.lock"));
  RunningProgram third(job_.TrainCommand({"--lock_wait=60"}), job_.options());
  third.WaitForLine("waiting up to 60 s for it to end");
  first.Signal(SIGTERM);
  EXPECT_EQ(first.Wait().exit_code, 75);
  third.WaitForLine("Iteration 0 (");
  third.Signal(SIGTERM);
  EXPECT_EQ(third.Wait().exit_code, 75);
  EXPECT_THAT(job_.Files("."), IsEmpty());
}

TEST_F(LockTestLock, TheLockOfAKilledRunIsTakenOver) {
  RunningProgram first(job_.TrainCommand(), job_.options());
  first.WaitForLine("Iteration 0 (");
  const pid_t killed = first.pid();
  first.Signal(SIGKILL);
  first.Wait();
  EXPECT_THAT(job_.Files("."), ElementsAre(".snap.lock"));
  job_.solver = first_;
  EXPECT_EQ(job_.Check().exit_code, 0);
  const Outcome second = job_.Train();
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_THAT(second.err,
              HasSubstr("Took over the lock of 'snap' from process " + std::to_string(killed)));
  EXPECT_THAT(job_.Files("."), IsEmpty());
}

TEST_F(LockTestLock, ARunThatStartsAnewSaysThatItReplacesSnapshots) {
  const char* const kNote =
      "'snap' already has snapshots (newest: iteration 20): this run starts from the beginning";
  job_.solver = first_;
  EXPECT_THAT(job_.Train().err, Not(HasSubstr(kNote)));
  EXPECT_THAT(job_.Train().err, HasSubstr(kNote));
  EXPECT_THAT(job_.Train({"--snapshot=snap_iter_10.solverstate"}).err, Not(HasSubstr(kNote)));
}

}  // namespace
}  // namespace trainer
