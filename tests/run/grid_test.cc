// The trials of a grid search and their results.

#include "trainer/run/search/grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "support/error_of.h"
#include "support/temp_folder.h"
#include "trainer/base/text/text.h"
#include "trainer/run/jobs/job_script.h"
#include "trainer/run/search/grid_search.h"
#include "trainer/run/search/trial_report.h"
#include "trainer/run/search/trial_result.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(GridTrialsTest, AreAllCombinationsEachInAFolderOfItsOwn) {
  const std::vector<Trial> trials =
      GridTrials({"base_lr=0,0.05", "momentum=0.5,0.9", "display=10"}, "out", "runs/snap");
  std::vector<std::string> folders;
  for (const Trial& trial : trials) folders.push_back(trial.folder);
  EXPECT_THAT(folders,
              ElementsAre("out/base_lr=0,momentum=0.5", "out/base_lr=0,momentum=0.9",
                          "out/base_lr=0.05,momentum=0.5", "out/base_lr=0.05,momentum=0.9"));
  EXPECT_EQ(trials[1].Name(), "base_lr=0 momentum=0.9");
  EXPECT_THAT(trials[1].changes, ElementsAre("base_lr=0", "momentum=0.9", "display=10",
                                             "snapshot_prefix=out/base_lr=0,momentum=0.9/snap"));
  EXPECT_EQ(trials[1].log, "out/base_lr=0,momentum=0.9/log");
}

TEST(GridTrialsTest, NamesThatAreNoFoldersGetAChecksum) {
  const std::vector<Trial> trials =
      GridTrials({"layer[ip].param=[{lr_mult: 1}],[{lr_mult: 2}]"}, "out", "snap");
  ASSERT_EQ(trials.size(), 2u);
  EXPECT_NE(trials[0].folder, trials[1].folder);
  for (const Trial& trial : trials) {
    EXPECT_EQ(trial.folder.find_first_of("[]{}: "), std::string::npos) << trial.folder;
  }
}

TEST(GridTrialsTest, RefusesWhatIsNoGrid) {
  const auto refused = [](const std::vector<std::string>& assignments, const std::string& part) {
    EXPECT_THAT(ErrorOf([&] { GridTrials(assignments, "out", "snap"); }),
                Pair(ErrorCode::kUsage, HasSubstr(part)));
  };
  refused({"base_lr=0.1"}, "give several values, as in --set base_lr=0.1,0.01");
  refused({}, "nothing to compare");
  refused({"base_lr=0.1,0.1"}, "the list has the same value twice");
  refused({"base_lr=0.1,,0.2"}, "a value in the list is empty");
  refused({"batch=0,32"}, "--set batch=0: a batch has at least 1 record; write e.g. batch=32");
  std::string many = "base_lr=0";
  for (int i = 1; i < 40; ++i) many += Join(",", i);
  refused({many, "momentum" + many.substr(many.find('='))}, "more than 1000 runs");
}

constexpr char kStart[] =
    R"({"event": "start", "iter": 0, "max_iter": 20, "net": "", "records": 0})"
    "\n";

// Writes the files that runs leave in the folders of trials.
class TrialResultTest : public testing::Test {
 protected:
  TrialResultTest() {
    trials_ = GridTrials({"base_lr=0.01,0.05"}, folder_.path(), "snap");
    for (const Trial& trial : trials_) std::filesystem::create_directory(trial.folder);
  }
  static void WriteMetrics(const Trial& trial, double accuracy, int iter = 20) {
    WriteText(trial.folder + "/metrics.jsonl",
              Join(kStart, R"({"event": "train", "iter": )", iter, R"(, "loss": 0.5})", "\n",
                   R"({"event": "test", "iter": 10, "net": 0, "outputs": {"accuracy": 0.1}})", "\n",
                   R"({"event": "test", "iter": )", iter, R"(, "net": 0, "outputs": {"accuracy": )",
                   accuracy, "}}\n"));
  }
  std::string Text() const { return ToText(ReadTrials(trials_, "")); }

  const TempFolder folder_;
  std::vector<Trial> trials_;
};

TEST_F(TrialResultTest, TheBestTestIsFirst) {
  WriteText(trials_[0].log, "I0101 Iteration 20\n");
  WriteText(trials_[1].log, "I0101 Iteration 20\n");
  WriteMetrics(trials_[0], 0.5);
  WriteMetrics(trials_[1], 0.75);
  for (const Trial& trial : trials_) AppendExitCode(trial, 0);
  const std::vector<std::string> lines = SplitList(Text(), '\n');
  ASSERT_GE(lines.size(), 3u);
  EXPECT_THAT(lines[0], testing::StartsWith("base_lr  best accuracy  at  last accuracy"));
  EXPECT_THAT(lines[1],
              AllOf(testing::StartsWith("0.05"), HasSubstr("0.75"), HasSubstr("finished")));
  EXPECT_THAT(lines[2], AllOf(testing::StartsWith("0.01"), HasSubstr("0.5")));
  EXPECT_THAT(Text(), HasSubstr(Join("Best: base_lr=0.05, in ", trials_[1].folder)));
}

TEST_F(TrialResultTest, TheLogSaysHowATrialEnded) {
  const Trial& trial = trials_[0];
  const auto state = [&] { return ReadTrialResult(trial, "").State(); };
  EXPECT_EQ(state(), "not begun");
  WriteText(trial.log, "I0101 a line\nerror: net.prototxt: the axis is wrong\n");
  EXPECT_EQ(state(), "running or killed");
  AppendExitCode(trial, 78);
  EXPECT_EQ(state(), "failed (78)");
  EXPECT_FALSE(ReadTrialResult(trial, "").IsFinished());
  EXPECT_THAT(Text(), HasSubstr("base_lr=0.01: net.prototxt: the axis is wrong\n"));
  for (const auto& [code, text] : {std::pair(75, "stopped"), {80, "diverged"}, {0, "finished"}}) {
    WriteText(trial.log, ReadText(trial.log) + "I0101 another start\n");
    EXPECT_EQ(state(), "running or killed");
    AppendExitCode(trial, code);
    EXPECT_EQ(state(), text);
    EXPECT_EQ(ReadTrialResult(trial, "").IsFinished(), code != 75);
  }
}

TEST_F(TrialResultTest, TheLossOfTheLastIterationIsComparedInsteadOfTheDisplayedOne) {
  for (size_t i = 0; i < 2; ++i) {
    WriteText(trials_[i].log, "");
    WriteText(trials_[i].folder + "/metrics.jsonl",
              Join(kStart, R"({"event": "train", "iter": 5, "loss": )", i == 0 ? 2 : 3, "}\n",
                   R"({"event": "end", "iter": 9, "stopped_early": false, "loss": )",
                   i == 0 ? 1.5 : 1.25, "}\n"));
  }
  const std::vector<std::string> lines = SplitList(Text(), '\n');
  EXPECT_THAT(lines[0], HasSubstr("last loss"));
  EXPECT_THAT(lines[1], AllOf(testing::StartsWith("0.05"), HasSubstr("1.25")));
  EXPECT_THAT(lines[2], AllOf(testing::StartsWith("0.01"), HasSubstr("1.5")));
}

TEST_F(TrialResultTest, WithoutTestsTheLastLossIsCompared) {
  for (size_t i = 0; i < 2; ++i) {
    WriteText(trials_[i].log, "");
    WriteText(trials_[i].folder + "/metrics.jsonl",
              Join(kStart, R"({"event": "train", "iter": 5, "loss": )", i == 0 ? 3 : 2, "}\n"));
  }
  const std::vector<std::string> lines = SplitList(Text(), '\n');
  EXPECT_THAT(lines[0], HasSubstr("last loss"));
  EXPECT_THAT(lines[1], testing::StartsWith("0.05"));
  EXPECT_THAT(Text(), testing::Not(HasSubstr("Best: ")));
}

class LoadGridTest : public testing::Test {
 protected:
  LoadGridTest() {
    folder_.Write("net.prototxt",
                  R"(layer { name: "d" type: "DummyData" top: "x" top: "y"
                       dummy_data_param { shape { dim: 2 dim: 3 } shape { dim: 2 dim: 3 } } }
                     layer { name: "loss" type: "EuclideanLoss" bottom: "x" bottom: "y" top: "l" })");
    options_.solver =
        folder_.Write("solver.prototxt", Join("net: \"", folder_ / "net.prototxt",
                                              "\" base_lr: 0.1 lr_policy: \"fixed\" max_iter: 5 "
                                              "snapshot_prefix: \"",
                                              folder_ / "snap", "\""));
  }
  std::pair<ErrorCode, std::string> Refusal(std::vector<std::string> assignments) {
    options_.assignments = std::move(assignments);
    return ErrorOf([&] { LoadGrid(options_); });
  }

  const TempFolder folder_;
  GridOptions options_;
};

TEST_F(LoadGridTest, AnErrorOfOneTrialIsThrownBeforeAnyStarts) {
  EXPECT_THAT(Refusal({"base_lr=0.1,soon"}),
              Pair(ErrorCode::kUsage, HasSubstr("(the run with base_lr=soon)")));
  EXPECT_THAT(Refusal({"gamma=0.1,-1"}),
              Pair(ErrorCode::kConfig, HasSubstr("(the run with gamma=-1)")));
  EXPECT_THAT(folder_.Names(), ElementsAre("net.prototxt", "solver.prototxt"));
}

TEST_F(LoadGridTest, TheTrialsAreTasksOfAnArray) {
  options_.assignments = {"base_lr=0.01,0.05"};
  const Grid grid = LoadGrid(options_);
  EXPECT_FLOAT_EQ(grid.spec.proto.base_lr(), 0.01f);
  JobSpec job;
  DescribeGrid(grid, options_, 1, &job);
  ASSERT_EQ(job.tasks.size(), 2u);
  EXPECT_EQ(job.tasks[1].folder, folder_ / "snap_sweep/base_lr=0.05");
  EXPECT_EQ(job.tasks[1].assignments[0], "base_lr=0.05");
}

// The first start writes the solver, and the next one compares it, before anything is trained.
TEST_F(LoadGridTest, ResultsOfAnotherSolverAreNotTaken) {
  options_.assignments = {"base_lr=0.01,0.05"};
  const Grid grid = LoadGrid(options_);
  for (const Trial& trial : grid.trials) {
    std::filesystem::create_directories(trial.folder);
    WriteText(trial.log, "");
    AppendExitCode(trial, 0);
  }
  EXPECT_EQ(RunTrials(grid, options_, {}), 0) << "all are over";
  options_.assignments.push_back("max_iter=10");
  EXPECT_THAT(ErrorOf([&] { RunTrials(LoadGrid(options_), options_, {}); }),
              Pair(ErrorCode::kCannotCreate, AllOf(HasSubstr("snap_sweep/base_lr=0.01/settings"),
                                                   HasSubstr("or they changed after that run"))));
}

TEST_F(LoadGridTest, TheExitCodeIsThatOfTheFirstFailureOrOfAllThatDiverged) {
  options_.assignments = {"base_lr=0.01,0.05"};
  const Grid grid = LoadGrid(options_);
  for (const Trial& trial : grid.trials) {
    std::filesystem::create_directories(trial.folder);
    WriteText(trial.log, "");
    AppendExitCode(trial, 80);
  }
  EXPECT_EQ(RunTrials(grid, options_, {}), 80) << "all diverged";
  AppendExitCode(grid.trials[0], 0);
  EXPECT_EQ(RunTrials(grid, options_, {}), 0) << "a loss that diverges is a result";
  WriteText(grid.trials[1].log, "");
  GridSearchOptions late;
  late.deadline = std::chrono::steady_clock::now();
  late.stop_exit_code = 77;
  EXPECT_EQ(RunTrials(grid, options_, late), 77) << "no time is left for the second";
}

}  // namespace
}  // namespace trainer
