// Runs in jobs of a batch system: scripts replace its commands and record their arguments.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>

#include "job.h"
#include "support/stub_commands.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Runs that do not end by themselves. A limit of one second is less than a run's reserve for its
// last snapshot (src/solver/deadline_reserve.h), so the run saves and stops as soon as it checks
// the clock.
class QueueTest : public testing::Test {
 protected:
  QueueTest() {
    job_.solver = Edited(job_.solver, "max_iter: 20", "max_iter: 100000000");
    job_.solver = Edited(job_.solver, "display: 5", "display: 1000");
    job_.solver = Edited(job_.solver, "snapshot: 10", "snapshot: 0");
    job_.solver = Edited(job_.solver, "test_interval: 10", "test_interval: 100000000");
    job_.Write();
  }

  void Command(const std::string& name, const std::string& lines) const {
    commands_.Add(name, lines);
  }
  // Makes squeue report this state and time left.
  void Squeue(const std::string& state, const std::string& left) const {
    Command("squeue", Join("case \"$*\" in *%T*) echo ", state, ";; *) echo ", left, ";; esac"));
  }
  std::vector<std::string> Asked(const std::string& name) const { return commands_.Asked(name); }

  Outcome Run(const std::vector<std::string>& more, const std::vector<std::string>& env) const {
    RunOptions options = job_.options();
    options.env.insert(options.env.end(), env.begin(), env.end());
    options.env.push_back(commands_.Path());
    return RunProgram(job_.TrainCommand(more), options);
  }
  // Expects that the run stopped by itself with one snapshot.
  void ExpectStoppedInTime(const Outcome& outcome, const std::string& limit) const {
    EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(limit));
    EXPECT_THAT(outcome.err, HasSubstr("] The time limit of this run is near: "));
    EXPECT_THAT(outcome.err, HasSubstr("] The time limit stopped the run at iteration "));
    EXPECT_THAT(job_.Files("snap_iter_"), SizeIs(2));
    EXPECT_THAT(job_.Files("."), IsEmpty());
  }

  Job job_;
  const StubCommands commands_{job_.folder()};
};

TEST_F(QueueTest, MaxWallEndsTheRunInTimeWithASnapshot) {
  bool in_time = false;
  for (int limit = 5; !in_time && limit < 50; limit *= 2) {  // other programs may use the cores
    for (const std::string& file : job_.Files("snap_")) unlink((job_.folder() / file).c_str());
    const std::string time = Join(limit < 10 ? "0:00:0" : "0:00:", limit);
    const auto start = std::chrono::steady_clock::now();
    const Outcome outcome = Run({"--max_wall=" + time}, {});
    in_time = std::chrono::steady_clock::now() - start < std::chrono::seconds(limit);
    ExpectStoppedInTime(outcome,
                        "Time limit: " + time + " from the start of this process (--max_wall)");
  }
  EXPECT_TRUE(in_time);
}

TEST_F(QueueTest, RanksEndInTimeTogether) {
  const Outcome outcome = Run({"--max_wall=5s", "--ranks=2", "--global_batch"}, {});
  ExpectStoppedInTime(outcome, "Time limit: 0:00:05");
}

// A run of twenty iterations, without a limit that stops it.
class ShortQueueTest : public QueueTest {
 protected:
  ShortQueueTest() {
    job_.solver = Edited(job_.solver, "max_iter: 100000000", "max_iter: 20");
    job_.Write();
  }
};

TEST_F(ShortQueueTest, AFinishedRunOfRanksEndsAtOnce) {
  ASSERT_EQ(Run({"--ranks=2", "--global_batch"}, {}).exit_code, 0);
  std::filesystem::remove_all(job_.folder() / "data");
  const Outcome outcome = Run({"--ranks=2", "--global_batch", "--resume=auto"}, {});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("Already at iteration 20 of 20: the run is finished, nothing "
                                     "to do"));
}

// A script named slurmstepd starts the run, notes its process and is killed.
TEST_F(QueueTest, ARunWhoseSlurmstepdIsKilledSavesAndEnds) {
  Squeue("RUNNING", "9-00:00:00");
  Command("slurmstepd", Join("\"$@\" & echo $! > '", job_.folder() / "run.pid", "'; wait"));
  RunOptions options = job_.options();
  options.env.insert(options.env.end(), {commands_.Path(), "SLURM_JOB_ID=123"});
  options.launcher = {job_.folder() / "bin/slurmstepd"};
  RunningProgram program(job_.TrainCommand(), options);
  program.WaitForLine("Iteration 1000 ");
  const pid_t run = std::stoi(ReadText(job_.folder() / "run.pid"));
  kill(program.pid(), SIGKILL);
  program.WaitForLine("Slurm job 123 no longer exists: its slurmstepd, process ");
  program.WaitForLine("SIGTERM stopped the run at iteration ");
  EXPECT_TRUE(Await([&] { return HasEnded(run); }));
  EXPECT_THAT(job_.Files("snap_iter_"), SizeIs(2));
}

TEST_F(QueueTest, ARunWhoseJobTheQueueDoesNotKnowSavesAndEnds) {
  Command(
      "squeue",
      "case \"$*\" in *%T*) echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1;; "
      "*) echo 9-00:00:00;; esac");
  const Outcome outcome = Run({"--job_check=1"}, {"SLURM_JOB_ID=123"});
  EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("Slurm job 123 no longer exists: squeue reported twice that "
                                     "it is over or queued again. The run saves"));
  EXPECT_THAT(job_.Files("snap_iter_"), SizeIs(2));
  EXPECT_THAT(Asked("squeue"),
              ElementsAre("-h -j 123 -o %L", "-h -j 123 -o %T", "-h -j 123 -o %T"));
}

TEST_F(QueueTest, RequeueAsksSlurmOnceEverythingIsSaved) {
  Squeue("RUNNING", "0:01");
  Command("scontrol",
          Join("ls '", job_.folder().path(), "' >> '", job_.folder().path(), "/there.asked'"));
  const Outcome outcome = Run({"--requeue"}, {"SLURM_JOB_ID=123"});
  EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("--requeue: Slurm job 123 is queued again"));
  EXPECT_THAT(Asked("scontrol"), ElementsAre("requeue 123"));
  EXPECT_THAT(Asked("there"), testing::Contains(HasSubstr(".solverstate")));
}

TEST_F(QueueTest, OfRanksTheFirstAloneAsks) {
  Squeue("RUNNING", "0:01");
  Command("scontrol", "");
  const Outcome outcome = Run({"--requeue", "--ranks=2", "--global_batch"}, {"SLURM_JOB_ID=123"});
  EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
  EXPECT_THAT(Asked("scontrol"), ElementsAre("requeue 123"));
}

// A short slot and one without a limit train together what one run does.
TEST_F(QueueTest, AChainOfSlotsIsOneRunBitForBit) {
  job_.solver = Edited(job_.solver, "max_iter: 100000000", "max_iter: 4000");
  job_.solver = Edited(job_.solver, "test_interval: 100000000", "test_interval: 500");
  job_.Write();
  Job whole;
  whole.solver = job_.solver;
  whole.Write();
  ASSERT_EQ(whole.Train().exit_code, 0);
  for (const char* limit : {"--max_wall=4s", "--max_wall=none"}) {
    const Outcome outcome = Run({"--resume=auto", limit}, {});
    EXPECT_THAT(outcome.exit_code, testing::AnyOf(0, 75)) << outcome.err;
  }
  for (const char* name : {"snap_iter_4000.caffemodel", "snap_iter_4000.solverstate"}) {
    EXPECT_TRUE(ReadText(job_.folder() / name) == ReadText(whole.folder() / name)) << name;
  }
}

}  // namespace
}  // namespace trainer
