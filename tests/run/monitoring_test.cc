// Files that a run writes into its folder before training.

#include "monitoring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "support/log_collector.h"
#include "support/temp_folder.h"
#include "support/test_device.h"
#include "trainer/base/text/text.h"
#include "trainer/monitor/run_directory.h"

namespace trainer {
namespace {

using testing::Contains;
using testing::HasSubstr;

class MonitoringTest : public testing::Test {
 protected:
  MonitoringTest() {
    folder_.Write("net.prototxt",
                  "layer { name: \"x\" type: \"DummyData\" top: \"x\" "
                  "dummy_data_param { shape { dim: 2 } } }");
    spec_ = LoadSolver(folder_.Write(
        "solver.prototxt",
        Join("net: \"", folder_ / "net.prototxt", "\" snapshot_prefix: \"", folder_ / "snap",
             "\" base_lr: 0.5 lr_policy: \"fixed\" max_iter: 4 snapshot: 2")));
  }
  bool Add(const MonitorOptions& options, const Rank& rank) {
    ObserverList observers;
    RunInfo info;
    return AddObservers(options, spec_, *MakeTestDevice(1), rank, nullptr, &observers, &info);
  }

  const TempFolder folder_;
  SolverSpec spec_;
};

TEST_F(MonitoringTest, DescribesTheRunInItsFolder) {
  std::filesystem::create_directory(folder_ / "run");
  EXPECT_TRUE(Add({.run = folder_ / "run"}, {0, 2}));
  EXPECT_THAT(ReadText(folder_ / "run/solver.prototxt"), HasSubstr("base_lr: 0.5"));
  EXPECT_THAT(ReadText(folder_ / "run/net.prototxt"), HasSubstr("type: \"DummyData\""));
  const RunInfo info = RunDirectory(folder_ / "run").ReadInfo();
  EXPECT_EQ(info.ranks, 2);
  EXPECT_EQ(info.process, getpid());
  EXPECT_EQ(info.snapshot_prefix, folder_ / "snap");
  EXPECT_EQ(info.solver, folder_ / "solver.prototxt");
  EXPECT_TRUE(info.saves);
}

TEST_F(MonitoringTest, WithoutANameTheFolderIsNextToTheSnapshots) {
  std::filesystem::create_directory(folder_ / "snap_run");
  EXPECT_TRUE(Add({.run = "auto"}, {}));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "snap_run/environment.json"));
}

TEST_F(MonitoringTest, OnlyRank0WritesAndAllShowNumbers) {
  std::filesystem::create_directory(folder_ / "run");
  EXPECT_TRUE(Add({.run = folder_ / "run"}, {1, 2}));
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "run"));
  EXPECT_FALSE(Add({}, {}));
}

TEST_F(MonitoringTest, AFolderThatCannotBeWrittenIsAWarning) {
  folder_.Write("run", "a file");
  const LogCollector log;
  EXPECT_TRUE(Add({.run = folder_ / "run"}, {}));
  EXPECT_THAT(log.lines, Contains(HasSubstr("run/solver.prototxt")));
}

}  // namespace
}  // namespace trainer
