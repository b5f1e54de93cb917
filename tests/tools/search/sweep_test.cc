// `trainer sweep`: several settings in turn, and runs that fail or are stopped.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "in_process.h"
#include "job.h"
#include "support/stub_commands.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class SweepTest : public testing::Test {
 protected:
  SweepTest() { job_.Write(); }
  std::vector<std::string> Command(const std::vector<std::string>& more) const {
    std::vector<std::string> command = {"sweep", "--solver=solver.prototxt"};
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }
  Outcome Sweep(const std::vector<std::string>& more) const {
    return RunProgram(Command(more), job_.options());
  }
  // Returns the first words of the table's rows.
  static std::vector<std::string> Rows(const Outcome& outcome) {
    std::vector<std::string> rows;
    for (const std::string& line : SplitList(outcome.out, '\n')) {
      const std::string word = line.substr(0, line.find(' '));
      if (word.find_first_not_of("0123456789.e-") == std::string::npos) rows.push_back(word);
    }
    return rows;
  }
  std::string Log(const std::string& name) const {
    return ReadText(job_.folder() / "snap_sweep/" + name + "/log");
  }
  bool HasFile(const std::string& name) const {
    return std::filesystem::exists(job_.folder() / "snap_sweep/" + name);
  }

  Job job_;
};

TEST_F(SweepTest, RunsEveryCombinationInAFolderOfItsOwnAndNamesTheBest) {
  const Outcome outcome =
      Sweep({"--set", "base_lr=0,0.05", "--set", "momentum=0.5,0.9", "--set", "display=10"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* run : {"base_lr=0,momentum=0.5", "base_lr=0,momentum=0.9",
                          "base_lr=0.05,momentum=0.5", "base_lr=0.05,momentum=0.9"}) {
    EXPECT_TRUE(HasFile(Join(run, "/snap_iter_20.caffemodel"))) << run;
    EXPECT_THAT(Log(run), AllOf(HasSubstr("Iteration 10 "), Not(HasSubstr("Iteration 5 ")),
                                HasSubstr("\nThe run ended with exit code 0\n")));
    EXPECT_TRUE(HasFile(Join(run, "/metrics.jsonl"))) << run;
  }
  const std::vector<std::string> rows = Rows(outcome);
  ASSERT_EQ(rows.size(), 4u) << outcome.out;
  EXPECT_EQ(rows[0], "0.05");
  EXPECT_EQ(rows[3], "0");
  EXPECT_THAT(outcome.out, HasSubstr("base_lr  momentum  best accuracy  at  last accuracy"));
  EXPECT_THAT(outcome.out, HasSubstr("\nBest: base_lr=0.05 momentum="));
  EXPECT_THAT(job_.Files("snap_iter"), testing::IsEmpty());
  const Outcome report = RunHere({"report", "snap_sweep", "--out=x.html"}, job_.options());
  EXPECT_EQ(report.exit_code, 66);
  EXPECT_THAT(report.err, HasSubstr("It contains 4 runs: give one or more of them: "
                                    "snap_sweep/base_lr=0,momentum=0.5, "));
}

TEST_F(SweepTest, TheTestAtTheEndCountsAndThatAtIteration0DoesNot) {
  job_.solver = Edited(job_.solver, "test_interval: 10", "test_interval: 1000");
  job_.Write();
  const Outcome outcome = Sweep({"--set", "base_lr=0,0.05"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(Rows(outcome)[0], "0.05");
  EXPECT_THAT(outcome.out, HasSubstr("\nBest: base_lr=0.05"));
  EXPECT_TRUE(Finds(outcome.out, "0.05 +[0-9.]+ +20 +[0-9.]+ +20 +finished")) << outcome.out;
}

TEST_F(SweepTest, TheOutputThatIsComparedMayBeGiven) {
  const Outcome outcome = Sweep({"--set", "base_lr=0,0.05", "--set", "best_output=loss"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("base_lr  best loss  at  last loss"));
  EXPECT_EQ(Rows(outcome)[0], "0.05") << outcome.out;
  EXPECT_THAT(Log("base_lr=0.05"), HasSubstr("Best test: loss "));
}

// The runs stop at iteration 20 and display none, or the loss of iteration 0 only.
TEST_F(SweepTest, WithoutTestsTheLossOfTheLastIterationRanks) {
  job_.solver = Edited(job_.solver, "test_iter: 3\n", "");
  job_.solver = Edited(job_.solver, "test_interval: 10\n", "");
  job_.Write();
  for (const char* display : {"0", "1000"}) {
    const Outcome outcome = Sweep({"--set", "base_lr=0,0.05", "--set", Join("display=", display),
                                   Join("--out=display_", display)});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("base_lr  last loss  iterations"));
    EXPECT_EQ(Rows(outcome)[0], "0.05") << outcome.out;
    EXPECT_TRUE(Finds(outcome.out, "0.05 +[0-9.]+ +20 +finished")) << outcome.out;
  }
}

TEST_F(SweepTest, ARunThatFailsIsNotedAndTheOthersGoOn) {
  // The data lack this axis, but only the run builds the net and can find out.
  const Outcome outcome = Sweep({"--set", "layer[ip].inner_product_param.axis=7,1"});
  EXPECT_EQ(outcome.exit_code, 78) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("failed (78)"));
  EXPECT_THAT(outcome.out, HasSubstr("finished"));
  EXPECT_THAT(outcome.out, HasSubstr("layer[ip].inner_product_param.axis=7: "));
}

TEST_F(SweepTest, ALossThatDivergesIsAResult) {
  const std::vector<std::string> more = {"--set", "base_lr=1e30,0.05", "--set",
                                         "clip_gradients=-1"};
  const Outcome outcome = Sweep(more);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("diverged"));
  EXPECT_EQ(Rows(outcome)[0], "0.05");
  EXPECT_THAT(Sweep(more).err, HasSubstr("base_lr=1e30: diverged before; to run it again, remove "
                                         "snap_sweep/base_lr=1e30"));
}

TEST_F(SweepTest, FinishedRunsAreNotRunAgainAndValuesMayBeAdded) {
  ASSERT_EQ(Sweep({"--set", "base_lr=0.01,0.05"}).exit_code, 0);
  const std::string log = Log("base_lr=0.05");
  const Outcome more = Sweep({"--set", "base_lr=0.02,0.01,0.05"});
  EXPECT_EQ(more.exit_code, 0) << more.err;
  EXPECT_EQ(Log("base_lr=0.05"), log);
  EXPECT_TRUE(HasFile("base_lr=0.02/snap_iter_20.caffemodel"));
  EXPECT_EQ(Rows(more).size(), 3u);
}

TEST_F(SweepTest, AStoppedSweepGoesOnWhereItWas) {
  job_.solver = Edited(job_.solver, "max_iter: 20", "max_iter: 100000000");
  job_.solver = Edited(job_.solver, "test_interval: 10", "test_interval: 100000000");
  job_.solver = Edited(job_.solver, "display: 5", "display: 1000");
  job_.solver = Edited(job_.solver, "snapshot: 10", "snapshot: 0");
  job_.Write();
  const std::vector<std::string> more = {"--set", "base_lr=0.01,0.05"};
  RunningProgram sweep(Command(more), job_.options());
  sweep.WaitForLine("Run 1 of 2, base_lr=0.01: its log is ");
  const std::string log = job_.folder() / "snap_sweep/base_lr=0.01/log";
  const auto tells = [&](const char* part) {
    return Await([&] { return ReadText(log).find(part) != std::string::npos; });
  };
  EXPECT_TRUE(tells("Iteration 1000 "));
  sweep.Signal(SIGTERM);
  const Outcome stopped = sweep.Wait();
  EXPECT_EQ(stopped.exit_code, 75) << stopped.err;
  EXPECT_THAT(stopped.out, AllOf(HasSubstr("stopped"), HasSubstr("not begun")));
  EXPECT_THAT(Log("base_lr=0.01"), HasSubstr("SIGTERM stopped the run at iteration "));
  // If other programs use the cores, a few seconds may be too short to resume.
  for (const int limit : {4, 60}) {
    const Outcome rest = Sweep({"--set", "base_lr=0.01,0.05", Join("--max_wall=", limit, "s")});
    EXPECT_EQ(rest.exit_code, 75) << rest.err;
    if (Log("base_lr=0.01").find("Resuming from ") != std::string::npos) break;
  }
  EXPECT_THAT(Log("base_lr=0.01"), HasSubstr("Resuming from snap_sweep/base_lr=0.01/snap_iter_"));
}

TEST_F(SweepTest, WhatIsWrongWithOneRunIsSaidBeforeAny) {
  ExpectRefused(job_, Sweep({"--set", "base_lr=0.1,soon"}), 64, "", "(the run with base_lr=soon)");
  ExpectRefused(job_, Sweep({"--set", "base_lr=0.1"}), 64, "nothing to compare");
  EXPECT_FALSE(std::filesystem::exists(job_.folder() / "snap_sweep"));
}

TEST_F(SweepTest, ForSlurmItPrintsAnArrayWhoseLogsTheTableReads) {
  const Outcome script =
      Sweep({"--set", "base_lr=0.01,0.05", "--set", "max_iter=5", "--system=slurm", "--time=90",
             "--weights=a b.caffemodel", "--cores=3", "--array_limit=1"});
  ASSERT_EQ(script.exit_code, 0) << script.err;
  EXPECT_EQ(script.err, "");
  EXPECT_THAT(script.out,
              AllOf(HasSubstr("#SBATCH --array=1-2%1\n"), HasSubstr("#SBATCH --cpus-per-task=3\n"),
                    HasSubstr("#SBATCH --time=1:30:00\n"), HasSubstr("2 runs of a sweep"),
                    HasSubstr("folder=snap_sweep/base_lr=0.05\n"),
                    HasSubstr("'--weights=a b.caffemodel'")));
  EXPECT_FALSE(std::filesystem::exists(job_.folder() / "snap_sweep"));
  const Outcome plain =
      Sweep({"--set", "base_lr=0.01,0.05", "--set", "max_iter=5", "--system=slurm"});
  WriteText(job_.folder() / "job.sh", plain.out);
  const StubCommands commands(job_.folder());  // the part of Slurm that the script uses
  commands.Add("srun", "exec \"$@\"");
  for (const char* task : {"1", "2"}) {
    RunOptions options = job_.options();
    options.env.insert(options.env.end(), {commands.Path(), "TRAINER=" + ProgramPath(),
                                           Join("SLURM_ARRAY_TASK_ID=", task)});
    options.launcher = {"bash", "job.sh"};
    EXPECT_EQ(RunProgram({}, options).exit_code, 0);
  }
  const Outcome table = Sweep({"--set", "base_lr=0.01,0.05", "--set", "max_iter=5", "--table"});
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_EQ(Rows(table).size(), 2u) << table.out;
  EXPECT_THAT(table.out, AllOf(HasSubstr("finished"), HasSubstr("best accuracy")));
}

TEST_F(SweepTest, DrawnTrialsAreRankedInATableAndInAReport) {
  const std::vector<std::string> more = {
      "--set", "base_lr=log:0.01..0.1", "--trials=2",  "--seed=1",
      "--set", "max_iter=10",           "--out=search"};
  const Outcome outcome = Sweep(more);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("trial  base_lr  best accuracy  at  last accuracy"));
  EXPECT_THAT(outcome.out, HasSubstr("\nBest: base_lr=0.0"));
  EXPECT_THAT(ReadText(job_.folder() / "search/trial_0002/log"),
              HasSubstr("\nThe run ended with exit code 0\n"));
  EXPECT_THAT(
      Sweep({"--set", "base_lr=log:0.01..0.1", "--trials=3", "--seed=2", "--out=search"}).err,
      HasSubstr("the folder has another search: --set max_iter=10 -> none, --seed 1 -> 2; give "
                "another --out"));
  const Outcome report = RunHere({"report", "search", "--out=search.html"}, job_.options());
  EXPECT_EQ(report.exit_code, 0) << report.err;
  EXPECT_THAT(report.out, AllOf(HasSubstr("best accuracy"), HasSubstr("wrote search.html")));
  EXPECT_THAT(ReadText(job_.folder() / "search.html"), HasSubstr("Trials of search"));
}

TEST_F(SweepTest, EachRunMayHaveSeveralRanks) {
  const Outcome outcome =
      Sweep({"--set", "base_lr=0.01,0.05", "--ranks=2", "--global_batch", "--set", "max_iter=5"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(Log("base_lr=0.05"), HasSubstr("sums through shared memory"));
}

}  // namespace
}  // namespace trainer
