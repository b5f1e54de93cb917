// Several ranks, started with --ranks on one machine, and with mpirun if it is installed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

#include "rank_job.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using RanksTest = RankJob;
using LongRanksTest = LongRankJob;

TEST_F(RanksTest, WithPartsOfABatchLearnWhatOneLearnsWithAllOfIt) {
  ASSERT_EQ(Train({}).exit_code, 0);
  const std::vector<float> one = Weights(kLast);
  for (const char* ranks : {"--ranks=2", "--ranks=4"}) {
    const Outcome outcome = Train({ranks, "--global_batch"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    ExpectNear(Weights(kLast), one, 1e-5f);
    EXPECT_THAT(outcome.err, HasSubstr("Batch of an iteration: 16 ("));
    EXPECT_THAT(outcome.err, HasSubstr("sums through shared memory"));
  }
}

TEST_F(RanksTest, RepeatBitForBit) {
  ASSERT_EQ(Train({"--ranks=2"}).exit_code, 0);
  const std::string weights = Bytes(kLast), state = Bytes("snap_iter_20.solverstate");
  ASSERT_EQ(Train({"--ranks=2", "--bucket_size=4"}).exit_code, 0);
  EXPECT_EQ(Bytes(kLast), weights);
  EXPECT_EQ(Bytes("snap_iter_20.solverstate"), state);
}

TEST_F(RanksTest, GoOnFromTheirSnapshotAloneAndInAnotherNumber) {
  ASSERT_EQ(Train({"--ranks=2", "--global_batch"}).exit_code, 0);
  const std::string whole = Bytes(kLast);
  const std::vector<float> weights = Weights(kLast);
  const std::string from = "--snapshot=snap_iter_10.solverstate";
  ASSERT_EQ(Train({from, "--ranks=2", "--global_batch"}).exit_code, 0);
  EXPECT_EQ(Bytes(kLast), whole);
  for (const char* ranks : {"--ranks=1", "--ranks=4"}) {
    const Outcome outcome = Train({from, ranks, "--global_batch"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    ExpectNear(Weights(kLast), weights, 1e-5f);
  }
}

TEST_F(RanksTest, LogOnceAndLeaveNothingBehind) {
  const Outcome outcome = Train({"--ranks=3"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string& err = outcome.err;
  EXPECT_NE(err.find("Iteration 10"), err.npos);
  EXPECT_EQ(err.find("Starting Optimization"), err.rfind("Starting Optimization"));
  EXPECT_THAT(job_.Files("."), IsEmpty());
}

TEST_F(RanksTest, SayABadNetOnce) {
  job_.net = Edited(job_.net, "type: \"Pooling\"", "type: \"Poling\"");
  job_.Write();
  const Outcome outcome = Train({"--ranks=3"});
  EXPECT_EQ(outcome.exit_code, 78);
  EXPECT_THAT(outcome.Errors(), ElementsAre(AllOf(HasSubstr("rank "), HasSubstr("Poling"))));
}

TEST_F(LongRanksTest, StopTogetherWhenOneIsAskedTo) {
  const auto program = Start({"--ranks=2"});
  kill(processes_[1], SIGTERM);
  const Outcome outcome = program->Wait();
  EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("A signal to another rank stopped the run at iteration"));
  EXPECT_EQ(job_.Files("snap_iter").size(), 2u);
  ExpectAllGone();
}

TEST_F(LongRanksTest, StopWhenTheirLauncherIsAskedTo) {
  const auto program = Start({"--ranks=2", "--stop_exit_code=7"});
  program->Signal(SIGTERM);
  const Outcome outcome = program->Wait();
  EXPECT_EQ(outcome.exit_code, 7) << outcome.err;
  EXPECT_EQ(job_.Files("snap_iter").size(), 2u);
  ExpectAllGone();
}

TEST_F(LongRanksTest, EndWith82WhenOneIsKilledAndNameItsHostAndIteration) {
  for (const size_t victim : {0u, 1u}) {
    const auto program = Start({"--ranks=2"});
    kill(processes_[victim], SIGKILL);
    const Outcome outcome = program->Wait();
    EXPECT_EQ(outcome.exit_code, 82) << outcome.err;
    ASSERT_EQ(outcome.Errors().size(), 1u) << outcome.err;
    EXPECT_THAT(outcome.Errors()[0],
                ContainsRegex("rank " + std::to_string(victim) + " \\([^ ]+, process " +
                              std::to_string(processes_[victim]) +
                              "\\) was killed by signal 9 .*; its last iteration was [0-9]+"));
    RemoveWhatIsLeft();
  }
}

// Regression: rank 0 joined and read the ranks' names before rank 1 was started, and named it
// "process 0".
TEST_F(RanksTest, KnowEachOthersProcessesHoweverSlowlyTheyAreStarted) {
  RunOptions options = job_.options();
  options.env.insert(options.env.end(), {"LD_PRELOAD=" TRAINER_FAULTY_IO, "FAULTY_IO_FORK=1000",
                                         "ASAN_OPTIONS=verify_asan_link_order=0"});
  const Outcome outcome = RunProgram(job_.TrainCommand({"--ranks=2"}), options);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* rank : {"0", "1"}) {
    EXPECT_THAT(outcome.err,
                ContainsRegex(std::string("  rank ") + rank + " \\([^ ]+ process [1-9]"));
  }
}

TEST_F(LongRanksTest, EndWith82WhenOneIsSilent) {
  int seconds = 6;
  const auto program = StartImpatient({"--ranks=2", "--peer_warning=2"}, &seconds);
  kill(processes_[1], SIGSTOP);
  const Outcome outcome = program->Wait();
  EXPECT_EQ(outcome.exit_code, 82) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("Waiting for rank 1 ("));
  EXPECT_THAT(outcome.Errors(), ElementsAre(AllOf(HasSubstr("rank 1 ("), HasSubstr("silent for"))));
  ExpectAllGone();
}

// A queue suspends and continues a job in this way, one process after the other.
TEST_F(LongRanksTest, GoOnAfterAllWereStoppedForLongerThanThePeerTimeout) {
  int seconds = 5;
  const auto program = StartImpatient({"--ranks=2", "--peer_warning=4"}, &seconds);
  processes_.push_back(program->pid());
  constexpr int kTurn = 300'000;  // rank 0 waits for rank 1, before and after
  const std::vector<size_t> last_first = {1, 0, 2};
  for (const size_t i : last_first) {
    kill(processes_[i], SIGSTOP);
    usleep(kTurn);
  }
  sleep(static_cast<unsigned>(seconds) + 1);
  for (const pid_t process : processes_) {
    kill(process, SIGCONT);
    usleep(kTurn);
  }
  processes_.pop_back();
  program->WaitForLine("Iteration ");
  program->WaitForLine("Iteration ");
  program->Signal(SIGTERM);
  const Outcome outcome = program->Wait();
  EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
  EXPECT_THAT(outcome.err, Not(HasSubstr("silent")));
  ExpectAllGone();
}

// Regression: the others waited for the last snapshot and took rank 0 for lost while it wrote, so
// the snapshot was incomplete.
TEST_F(RanksTest, WaitForALastSnapshotThatTakesLongerThanThePeerTimeout) {
  job_.solver = Edited(job_.solver, "snapshot: 10", "snapshot: 0");  // only the last one
  job_.Write();
  RunOptions options = job_.options();
  options.env.insert(options.env.end(), {"LD_PRELOAD=" TRAINER_FAULTY_IO, "FAULTY_IO_SYNC=2500",
                                         "ASAN_OPTIONS=verify_asan_link_order=0"});
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome =
      RunProgram(job_.TrainCommand({"--ranks=2", "--peer_warning=7", "--peer_timeout=8"}), options);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_GT(std::chrono::steady_clock::now() - start, std::chrono::seconds(8));
  EXPECT_TRUE(std::filesystem::exists(job_.folder() / "snap_iter_20.solverstate"));
}

TEST_F(LongRanksTest, EndWithTheirLauncher) {
  const auto program = Start({"--ranks=2"});
  program->Signal(SIGKILL);
  ExpectAllGone();
}

// Containers often have only 64 MiB in /dev/shm, and other programs fill it.
TEST_F(RanksTest, NeedNoRoomInDevShm) {
  if (std::system("unshare -m mount -t tmpfs none /dev/shm 2>/dev/null") != 0) {
    GTEST_SKIP() << "mounting another /dev/shm needs root";
  }
  const std::string full =
      "mount -t tmpfs -o size=64k none /dev/shm && "
      "{ head -c 1000000 /dev/zero >/dev/shm/filler 2>/dev/null; exec \"$0\" \"$@\"; }";
  const Outcome outcome = Train({"--ranks=2"}, {"unshare", "-m", "sh", "-c", full});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("2 ranks on 1 machine; sums through shared memory"));
}

TEST_F(RanksTest, SayWhyTheyGetNoMemoryToShare) {
  RunOptions options = job_.options();
  options.file_limit = 4096;
  const Outcome outcome = RunProgram(job_.TrainCommand({"--ranks=2"}), options);
  EXPECT_EQ(outcome.exit_code, 81) << outcome.err;
  EXPECT_THAT(outcome.Errors(), ElementsAre(AllOf(HasSubstr("memory that ranks share"),
                                                  HasSubstr("ulimit -f unlimited"))));
}

TEST(LoneTaskTest, IsToldHowToTrainWithAllTasks) {
  Job job;
  job.Write();
  RunOptions options = job.options();
  options.env.push_back("SLURM_NTASKS=4");
  const Outcome outcome = RunProgram(job.TrainCommand(), options);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("SLURM_NTASKS is 4, but this run has one rank"));
}

}  // namespace
}  // namespace trainer
