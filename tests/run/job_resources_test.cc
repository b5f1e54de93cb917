// Resources that batch scripts request, from the memory estimate of a run.

#include "trainer/run/jobs/job_resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"
#include "support/log_collector.h"
#include "support/stub_commands.h"
#include "support/temp_folder.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class JobResourcesTest : public testing::Test {
 protected:
  // Returns a solver with momentum on a net of one inner product, for 16 items of `inputs` numbers.
  SolverSpec Solver(int outputs, const std::string& prefix = "snap", int inputs = 784) const {
    folder_.Write("net.prototxt", Join(R"(
layer { name: "d" type: "DummyData" top: "x" top: "y"
  dummy_data_param { shape { dim: 16 dim: )",
                                       inputs, R"( } shape { dim: 16 } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
  inner_product_param { num_output: )",
                                       outputs, R"( } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "y" top: "loss" })"));
    return LoadSolver(folder_.Write("solver.prototxt",
                                    Join("net: \"", folder_ / "net.prototxt",
                                         "\" base_lr: 0.1 momentum: 0.9 max_iter: 20 snapshot: 10 "
                                         "lr_policy: \"fixed\" snapshot_prefix: \"",
                                         folder_ / prefix, "\"")));
  }

  const TempFolder folder_;
};

// 200,000 outputs have 157 million weights of four bytes. Memory also holds gradients, momentum and
// the copy for a snapshot.
TEST_F(JobResourcesTest, RequestsWhatTheNetNeeds) {
  JobSpec job;
  job.cores = 0;
  EstimateJobResources(Solver(10), &job);
  EXPECT_EQ(job.memory_gib, 1);
  EXPECT_EQ(job.cores, 1);
  EXPECT_EQ(job.warning_seconds, 60);
  EXPECT_THAT(folder_.Names(), ElementsAre("net.prototxt", "solver.prototxt"))
      << "the file that measures is removed";
  job.cores = 0;
  EstimateJobResources(Solver(200000), &job);
  EXPECT_EQ(job.memory_gib, 5);
  EXPECT_EQ(job.cores, 32);
  EXPECT_GE(job.warning_seconds, 88);
  job.cores = 0;
  job.node_cores = 16;
  EstimateJobResources(Solver(200000), &job);
  EXPECT_EQ(job.cores, 16) << "those of the largest node";
  job.ranks_per_node = 2;
  job.cores = 5;
  EstimateJobResources(Solver(200000), &job);
  EXPECT_EQ(job.memory_gib, 9);
  EXPECT_EQ(job.cores, 5);
}

// 16 x 1,250 x 5,000 multiply-adds are exactly twice 50 million.
TEST_F(JobResourcesTest, AWholeNumberOfCoresGetsNoneMore) {
  JobSpec job;
  job.cores = 0;
  EstimateJobResources(Solver(5000, "snap", 1250), &job);
  EXPECT_EQ(job.cores, 2);
  job.cores = 0;
  EstimateJobResources(Solver(5000, "snap", 1251), &job);
  EXPECT_EQ(job.cores, 3);
}

TEST_F(JobResourcesTest, RefusesMoreCoresThanANodeHas) {
  JobSpec job;
  job.cores = 9;
  job.ranks_per_node = 2;
  job.node_cores = 16;
  const SolverSpec spec = Solver(10);
  EXPECT_THAT(ErrorOf([&] { EstimateJobResources(spec, &job); }),
              Pair(ErrorCode::kUsage,
                   "--cores=9: 2 ranks per node would need 18 cores, but the largest node has 16 "
                   "(sinfo); give --cores=8 or less"));
}

TEST_F(JobResourcesTest, WarnsIfSnapshotsTakeMostOfAJob) {
  JobSpec job;
  job.time = std::chrono::minutes(1);
  const LogCollector log;
  EstimateJobResources(Solver(10), &job);
  EXPECT_THAT(log.lines, testing::Not(testing::Contains(HasSubstr("less than half"))));
  EstimateJobResources(Solver(200000, "absent/snap"), &job);
  EXPECT_THAT(log.lines, testing::Contains(HasSubstr("less than half of each job's time is left")));
}

// The warning leaves time for two snapshots and 5 s, and more (a minute, say) up to an eighth of
// the time limit.
TEST(WarningSecondsTest, TheSignalComesLaterInAShortJob) {
  using std::chrono::minutes;
  EXPECT_EQ(WarningSeconds(minutes(2), 1), 15);
  EXPECT_EQ(WarningSeconds(minutes(1), 1), 7);
  EXPECT_EQ(WarningSeconds(minutes(8), 1), 60);
  EXPECT_EQ(WarningSeconds(minutes(240), 40), 115);
  EXPECT_EQ(WarningSeconds(minutes(1), 40), 85);
}

TEST(ParseJobTimeTest, ReadsTimesOfAllKinds) {
  using std::chrono::minutes;
  EXPECT_EQ(ParseJobTime("90"), minutes(90));
  EXPECT_EQ(ParseJobTime("90m"), minutes(90));
  EXPECT_EQ(ParseJobTime("1-12:00:00"), minutes(36 * 60));
  for (const char* text : {"soon", "30s"}) {
    EXPECT_THAT(
        ErrorOf([&] { ParseJobTime(text); }),
        Pair(ErrorCode::kUsage, testing::StartsWith(Join(
                                    "--time=", text, ": not a time of at least one ", "minute"))));
  }
}

TEST(JobNameTest, IsThatOfTheFolder) {
  EXPECT_EQ(JobName("models/le net/solver.prototxt"), "le-net");
  EXPECT_EQ(JobName("a.b.prototxt"), "a");
  EXPECT_EQ(JobName("./.prototxt"), "train");
}

TEST(CoresOfLargestNodeTest, AsksSinfo) {
  const TempFolder folder;
  const StubCommands commands(folder);
  const std::string path = getenv("PATH");
  setenv("PATH", commands.Path().substr(sizeof "PATH=" - 1).c_str(), 1);
  EXPECT_EQ(CoresOfLargestNode(""), 0) << "without sinfo";
  commands.Add("sinfo", "echo 4; echo 16");
  EXPECT_EQ(CoresOfLargestNode("p"), 16);
  setenv("PATH", path.c_str(), 1);
  EXPECT_THAT(commands.Asked("sinfo"), ElementsAre("-h -e -o %c -p p"));
}

}  // namespace
}  // namespace trainer
