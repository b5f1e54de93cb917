// Options that a sweep refuses, and sweeps as job arrays and with several seeds.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "random_search_job.h"
#include "support/error_of.h"
#include "trainer/base/text/text.h"
#include "trainer/run/search/grid_search.h"
#include "trainer/run/search/random_search.h"
#include "trainer/run/search/trial_report.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using testing::UnorderedElementsAre;

using SweepOptionsTest = RandomSearchTest;

TEST_F(SweepOptionsTest, RefusesOptionsThatContradictEachOther) {
  options_.stops_early = true;
  EXPECT_THAT(Refusal(), Pair(ErrorCode::kUsage,
                              HasSubstr("--stop=asha needs --trials=9 or more: a third of 9")));
  options_.trials = 0;
  EXPECT_THAT(Refusal(), Pair(ErrorCode::kUsage,
                              HasSubstr("--set base_lr=log:0.001..0.1: give the number of values "
                                        "to draw with --trials=N")));
  options_.assignments = {"base_lr=0.1,0.2"};
  EXPECT_THAT(Refusal(),
              Pair(ErrorCode::kUsage, HasSubstr("--stop=asha works with --trials=N: a grid trains "
                                                "each combination to its end")));
  options_.stops_early = false;
  options_.seeds = 2;
  options_.assignments.push_back("random_seed=7");
  EXPECT_THAT(Refusal(),
              Pair(ErrorCode::kUsage,
                   HasSubstr("--seeds and --set random_seed cannot both be given: --seeds=3 "
                             "trains with the seeds 1, 2 and 3")));
  options_ = GridOptions{
      .solver = options_.solver, .state = {}, .assignments = {"base_lr=1,2"}, .folder = "out/"};
  EXPECT_THAT(Refusal(), Pair(ErrorCode::kUsage, HasSubstr("--out=out/: leave out the last '/'")));
}

TEST_F(SweepOptionsTest, RefusesTwoBatches) {
  Grid grid = LoadGrid(options_);
  grid.trials[0].batch = "32";
  search_.train_flags = {"--batch=64"};
  EXPECT_THAT(ErrorOf([&] { RunSearch(grid, options_, search_); }),
              Pair(ErrorCode::kUsage, HasSubstr("--batch and --set batch cannot both be given")));
  EXPECT_THAT(training_.calls, IsEmpty());
}

TEST_F(SweepOptionsTest, TheTasksOfAnArrayShareTheTrials) {
  const Grid grid = LoadGrid(options_);
  JobSpec job;
  job.command = {
      "trainer",    "sweep",          "--solver=s.prototxt", "--set",     "base_lr=log:1..2",
      "--trials=4", "--system=slurm", "--time=90",           "--cores=3", "--array_limit=2",
      "--gpu=0"};
  job.array_limit = 2;
  DescribeGrid(grid, options_, 1, &job);
  EXPECT_EQ(job.workers, 2);
  EXPECT_THAT(job.worker, ElementsAre("sweep", "--solver=s.prototxt", "--set", "base_lr=log:1..2",
                                      "--trials=4", "--gpu=0"));
  EXPECT_THAT(JobScript(job),
              AllOf(HasSubstr("#SBATCH --array=1-2\n"), HasSubstr("# 2 tasks of a search, each on"),
                    HasSubstr("\"$trainer\" sweep --solver=s.prototxt --set base_lr=log:1..2 "
                              "--trials=4 --gpu=0\n"),
                    Not(HasSubstr("folder="))));
  job.array_limit = 0;
  DescribeGrid(grid, options_, 1, &job);
  EXPECT_EQ(job.workers, 4);
}

TEST_F(SweepOptionsTest, AGridMayHaveSeedsAndBatches) {
  const std::vector<Trial> runs = GridTrials({"base_lr=0.1,0.2", "batch=8,16"}, "out", "snap", 2);
  ASSERT_EQ(runs.size(), 8u);
  EXPECT_EQ(runs[7].folder, "out/base_lr=0.2,batch=16,seed_2");
  EXPECT_EQ(runs[7].Name(), "base_lr=0.2 batch=16 random_seed=2");
  EXPECT_EQ(runs[7].number, 4);
  EXPECT_THAT(runs[7].Flags(),
              ElementsAre("--set", "base_lr=0.2", "--set", "random_seed=2", "--set",
                          "snapshot_prefix=out/base_lr=0.2,batch=16,seed_2/snap", "--batch=16"));
  EXPECT_EQ(GridTrials({"base_lr=0.1"}, "out", "snap", 2)[1].folder, "out/seed_2");
  options_.trials = 0;
  options_.seeds = 2;
  options_.assignments = {"base_lr=0.1,0.2"};
  const Grid grid = LoadGrid(options_);
  training_.accuracies["base_lr=0.2,seed_2"] = 0.75;
  EXPECT_EQ(RunSweep(grid, options_, search_), 0);
  EXPECT_THAT(training_.calls, UnorderedElementsAre("base_lr=0.1,seed_1", "base_lr=0.1,seed_2",
                                                    "base_lr=0.2,seed_1", "base_lr=0.2,seed_2"));
  EXPECT_THAT(ToText(ReadSweep(grid, options_)),
              AllOf(HasSubstr("mean best accuracy"), HasSubstr("0.625"), HasSubstr("2 of 2"),
                    HasSubstr("Best: base_lr=0.2, in ")));
}

}  // namespace
}  // namespace trainer
