// Random searches: which worker trains which trial when, and the files in their folder.

#include "trainer/run/search/random_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <latch>
#include <thread>
#include <utility>

#include "random_search_job.h"
#include "support/error_of.h"
#include "support/log_collector.h"
#include "support/test_device.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/snapshot_lock.h"
#include "trainer/monitor/run_metrics.h"
#include "trainer/run/training_run.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using testing::SizeIs;

TEST_F(RandomSearchTest, TrainsEachTrialOnceAndMoreTrialsMayBeAdded) {
  search_.train_flags = {"--gpu=0"};
  EXPECT_THAT(Calls(), ElementsAre("trial_0001", "trial_0002", "trial_0003", "trial_0004"));
  EXPECT_THAT(training_.last_words,
              AllOf(Contains("--resume=auto"), Contains("--gpu=0"), Contains("--lock_wait=120"),
                    Contains(testing::StartsWith("base_lr=0.0")),
                    Contains(Join("snapshot_prefix=", out_, "/trial_0004/snap"))));
  EXPECT_THAT(Calls(), IsEmpty()) << "all are finished";
  options_.trials = 6;
  EXPECT_THAT(Calls(), ElementsAre("trial_0005", "trial_0006"));
  EXPECT_TRUE(Exists("trial_0006.json"));
  EXPECT_FALSE(Exists(".trial_0006.lock"));
}

TEST_F(RandomSearchTest, TheBestThirdOfEachStageContinues) {
  options_.trials = 9;
  options_.stops_early = true;
  training_.accuracies = {{"trial_0002", 0.9}, {"trial_0005", 0.7}, {"trial_0009", 0.8}};
  EXPECT_THAT(Calls(),
              ElementsAre("trial_0001 until 1/9", "trial_0002 until 1/9", "trial_0003 until 1/9",
                          "trial_0002 until 1/3", "trial_0004 until 1/9", "trial_0005 until 1/9",
                          "trial_0006 until 1/9", "trial_0005 until 1/3", "trial_0007 until 1/9",
                          "trial_0008 until 1/9", "trial_0009 until 1/9", "trial_0009 until 1/3",
                          "trial_0002"));
  const std::vector<std::string> lines = SplitList(Table(), '\n');
  ASSERT_GE(lines.size(), 11u);
  EXPECT_THAT(lines[0], testing::StartsWith("trial"));
  EXPECT_THAT(lines[1], AllOf(testing::StartsWith("2"), HasSubstr("90"), HasSubstr("finished")));
  EXPECT_THAT(lines[2], AllOf(testing::StartsWith("9"), HasSubstr("stopped at 1/3")));
  EXPECT_THAT(lines[4], AllOf(testing::StartsWith("1"), HasSubstr("stopped at 1/9")));
  EXPECT_THAT(lines[10], AllOf(HasSubstr("Best: base_lr="), HasSubstr("trial_0002")));
  EXPECT_THAT(Calls(), IsEmpty());
}

TEST_F(RandomSearchTest, TrialsAreRankedByTheMeanOverTheirSeeds) {
  options_.trials = 2;
  options_.seeds = 3;
  training_.accuracies = {{"trial_0001_seed_1", 0.9},
                          {"trial_0001_seed_2", 0.1},
                          {"trial_0002_seed_1", 0.5},
                          {"trial_0002_seed_2", 0.625},
                          {"trial_0002_seed_3", 0.75}};
  EXPECT_THAT(Calls(), SizeIs(6));
  const std::vector<std::string> lines = SplitList(Table(), '\n');
  EXPECT_THAT(lines[0], HasSubstr("mean best accuracy  spread  runs"));
  EXPECT_THAT(lines[1], AllOf(testing::StartsWith("2"), HasSubstr("0.625"), HasSubstr(" 0.125"),
                              HasSubstr("3 of 3")));
  EXPECT_THAT(lines[2], AllOf(testing::StartsWith("1"), HasSubstr(" 0.5 "), HasSubstr(" 0.4 ")));
  EXPECT_THAT(Table(), HasSubstr("trial_0002_seed_1, "));
  EXPECT_THAT(BestRunFolders(ReadSearch(out_), 4),
              ElementsAre(out_ + "/trial_0002_seed_1", out_ + "/trial_0002_seed_2",
                          out_ + "/trial_0002_seed_3", out_ + "/trial_0001_seed_1"));
}

TEST_F(RandomSearchTest, TwoWorkersOfOneFolderShareTheTrials) {
  options_.trials = 9;
  options_.stops_early = true;
  std::latch both(2);  // each worker has begun its first trial
  const auto work = [&] {
    GridSearchOptions search;
    bool first = true;
    search.start = [&, first](const auto& words, const auto& log) mutable {
      if (std::exchange(first, false)) both.arrive_and_wait();
      return training_(words, log);
    };
    EXPECT_EQ(RunSearch(LoadGrid(options_), options_, search), 0);
  };
  { const std::jthread one(work), other(work); }
  std::vector<std::string> calls = training_.calls;
  std::ranges::sort(calls);
  EXPECT_EQ(std::ranges::adjacent_find(calls), calls.end()) << "no trial was trained twice";
  EXPECT_EQ(std::ranges::count_if(calls, [](const auto& c) { return c.ends_with(" 1/9"); }), 9);
  EXPECT_GE(std::ranges::count_if(calls, [](const auto& c) { return c.ends_with(" 1/3"); }), 3);
  EXPECT_GE(std::ranges::count_if(calls, [](const auto& c) { return c.size() == 10; }), 1);
  for (const auto& entry : std::filesystem::directory_iterator(out_)) {
    EXPECT_FALSE(entry.path().string().ends_with(".lock")) << entry.path();
  }
}

TEST_F(RandomSearchTest, ATrialOfAnotherProcessIsLeftToItAndOneOfADeadProcessIsTaken) {
  std::filesystem::create_directory(out_);
  const pid_t child = fork();
  if (child == 0) {
    static_cast<void>(SnapshotLock::Try(out_ + "/trial_0001").release());
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  ASSERT_TRUE(Exists(".trial_0001.lock"));
  const auto held = SnapshotLock::Try(out_ + "/trial_0003");
  const LogCollector log;
  EXPECT_THAT(Calls(), ElementsAre("trial_0001", "trial_0002", "trial_0004"));
  EXPECT_THAT(log.lines, Contains(HasSubstr("Took over the lock")));
  EXPECT_THAT(log.lines, Contains(HasSubstr("Other processes train 1 trial of this search")));
}

TEST_F(RandomSearchTest, AStoppedSearchContinuesWhereItWas) {
  training_.codes["trial_0002"] = 75;
  search_.stop_exit_code = 77;
  EXPECT_EQ(Run(), 77);
  EXPECT_THAT(training_.calls, ElementsAre("trial_0001", "trial_0002"));
  EXPECT_THAT(Table(), HasSubstr("stopped"));
  training_.codes.clear();
  EXPECT_THAT(Calls(), ElementsAre("trial_0002", "trial_0003", "trial_0004"));
  GridSearchOptions late = search_;
  late.deadline = std::chrono::steady_clock::now();
  options_.trials = 5;
  EXPECT_EQ(RunSearch(LoadGrid(options_), options_, late), 77) << "no time is left";
}

TEST_F(RandomSearchTest, AFailedTrialIsTriedOnceInEachStart) {
  training_.codes["trial_0002"] = 74;
  EXPECT_EQ(Run(), 74);
  EXPECT_THAT(training_.calls, SizeIs(4)) << "the others are trained";
  EXPECT_THAT(Table(), AllOf(HasSubstr("failed (74)"), HasSubstr("it failed")));
  training_.calls.clear();
  EXPECT_EQ(Run(), 74);
  EXPECT_THAT(training_.calls, ElementsAre("trial_0002"));
  training_.codes.clear();
  EXPECT_THAT(Calls(), ElementsAre("trial_0002"));
  EXPECT_THAT(Table(), Not(HasSubstr("failed")));
}

TEST_F(RandomSearchTest, PatienceEndsATrialButNotOneWhoseOtherSeedFailed) {
  options_.trials = 9;
  options_.seeds = 2;
  options_.stops_early = true;
  training_.early_ends = {{"trial_0001_seed_1", 5}, {"trial_0002_seed_1", 5}};
  training_.accuracies = {{"trial_0001_seed_1", 0.9}, {"trial_0002_seed_1", 0.8}};
  training_.codes["trial_0001_seed_2"] = 74;
  EXPECT_EQ(Run(), 74);
  EXPECT_THAT(training_.calls, Not(Contains("trial_0002_seed_1 until 1/3")));
  training_.codes.clear();
  EXPECT_THAT(Calls(), Contains("trial_0001_seed_2 until 1/9"));
}

TEST_F(RandomSearchTest, ALossThatDivergesIsAResultUnlessAllDiverge) {
  options_.trials = 9;
  options_.stops_early = true;
  training_.codes["trial_0001"] = 80;
  training_.accuracies["trial_0001"] = 0.9;  // before it diverged
  EXPECT_THAT(Calls(), Not(Contains("trial_0001 until 1/3")));
  EXPECT_THAT(Table(), HasSubstr("diverged"));
  options_.folder = folder_ / "whole";
  options_.stops_early = false;
  EXPECT_EQ(Run(), 0);
  EXPECT_THAT(ToText(ReadSearch(options_.folder)), HasSubstr("whole/trial_0002\n"))
      << "the best of the others";
  options_.folder = folder_ / "all";
  for (int i = 1; i <= 9; ++i) training_.codes[Join("trial_000", i)] = 80;
  EXPECT_EQ(Run(), 80);
}

TEST_F(RandomSearchTest, TrialsWithoutAScoreDoNotContinueAndSaySo) {
  options_.trials = 9;
  options_.stops_early = true;
  training_.silent = true;
  const LogCollector log;
  EXPECT_THAT(Calls(), SizeIs(9));
  EXPECT_THAT(log.lines, Contains(HasSubstr("stopped at 1/9, without a score: its metrics have no "
                                            "test and no loss; see its log")));
}

// TrainingRun replaces the child process and trains in this process.
TEST_F(RandomSearchTest, ATrialThatContinuesEqualsOneThatWasTrainedInOneGo) {
  search_.start = [](const std::vector<std::string>& words, const std::string& log) {
    TrainRequest request;
    request.solver.file = FlagIn(words, "--solver");
    for (size_t i = 0; i + 1 < words.size(); ++i) {
      if (words[i] == "--set") request.solver.set.push_back(words[i + 1]);
    }
    request.start.resume = "auto";
    request.stop.until = FlagIn(words, "--until");
    request.monitor.run = FlagIn(words, "--run");
    TrainingRunDeps deps;
    deps.join = [](const RankOptions&, int) { return nullptr; };
    deps.make_device = [](const DeviceChoice&) { return MakeTestDevice(1); };
    deps.scheduler.variable = [](const char*) { return std::string(); };
    WriteText(log, ReadText(log));
    return ExitStatus{TrainingRun(request, nullptr, deps).Run()};
  };
  options_.trials = 9;
  options_.stops_early = true;
  ASSERT_EQ(Run(), 0);
  const TrialRow best = ReadSearch(out_).rows[0];
  ASSERT_EQ(best.stages, 3u) << ToText(ReadSearch(out_));
  EXPECT_EQ(best.runs[0].second.iter, 18);
  const std::string early = best.trial().folder;
  EXPECT_TRUE(std::filesystem::exists(early + "/snap_iter_2.solverstate"));
  EXPECT_TRUE(std::filesystem::exists(early + "/snap_iter_6.solverstate"));

  options_.stops_early = false;
  options_.folder = folder_ / "one_go";
  options_.trials = best.trial().number;
  ASSERT_EQ(Run(), 0);
  const std::string whole = options_.folder + "/" + FileNameOf(early);
  EXPECT_FALSE(std::filesystem::exists(whole + "/snap_iter_6.solverstate"));
  EXPECT_EQ(ReadText(early + "/snap_iter_18.caffemodel"),
            ReadText(whole + "/snap_iter_18.caffemodel"));
  const auto rates = [](const std::string& folder) {
    std::vector<std::pair<double, double>> points;
    for (const MetricPoint& point : ReadRunMetrics(folder).rate) {
      points.emplace_back(point.iter, point.value);
    }
    return points;
  };
  EXPECT_THAT(rates(early), SizeIs(18));
  EXPECT_EQ(rates(early), rates(whole));
}

TEST_F(RandomSearchTest, TheFolderOfAnotherSearchIsRefused) {
  Calls();
  options_.seed = 2;
  EXPECT_THAT(ErrorOf([&] { Run(); }),
              Pair(ErrorCode::kCannotCreate,
                   HasSubstr("search.json: the folder has another search: --seed 1 -> 2; give "
                             "another --out, or the values of that search; only --trials may "
                             "differ")));
  options_.seed = 1;
  options_.seeds = 3;
  options_.assignments = {"base_lr=log:0.01..0.1", "momentum=0.5"};
  EXPECT_THAT(ErrorOf([&] { Run(); }).second,
              HasSubstr("another search: --set base_lr=log:0.001..0.1 -> base_lr=log:0.01..0.1 "
                        "momentum=0.5, --seeds 0 -> 3; give"));
  options_.seeds = 0;
  options_.assignments = {"base_lr=log:0.001..0.1", "momentum=0.5"};
  EXPECT_THAT(ErrorOf([&] { Run(); }).second,
              HasSubstr("another search: --set none -> momentum=0.5; give"));
  options_.assignments = {"base_lr=log:0.001..0.1", "snapshot_prefix=" + std::string(200, 'a')};
  options_.folder = out_;
  EXPECT_THAT(ErrorOf([&] { Run(); }).second,
              HasSubstr("another search: --set (long values); give"));
  options_.assignments = {"base_lr=log:0.001..0.1"};
  const std::string solver = ReadText(options_.solver);
  WriteText(options_.solver, solver + " gamma: 0.5");
  EXPECT_THAT(ErrorOf([&] { Run(); }),
              Pair(ErrorCode::kCannotCreate,
                   HasSubstr("search.json: the solver or its net has changed since the search in "
                             "this folder began: give another --out")));
  WriteText(options_.solver, solver + " # a comment changes nothing");
  options_.trials = 5;
  EXPECT_EQ(Run(), 0);
  WriteText(out_ + "/trial_0002.json", "{");
  EXPECT_THAT(ErrorOf([&] { Run(); }),
              Pair(ErrorCode::kData, HasSubstr("trial_0002.json: is not a file that a search "
                                               "wrote; remove it")));
}

}  // namespace
}  // namespace trainer
