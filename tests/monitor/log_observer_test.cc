// Tests that the lines of the log are as the tools that read Caffe's logs expect.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "support/log_collector.h"
#include "trainer/monitor/observer.h"

namespace trainer {
namespace {

using testing::ElementsAre;

class LogObserverTest : public testing::Test {
 protected:
  std::unique_ptr<TrainingObserver> log_ = ObserverRegistry::Get().Make("log");
  LogCollector collected_;
};

TEST_F(LogObserverTest, AnIterationHasItsLossItsOutputsAndItsRate) {
  const std::vector<ReportedValue> outputs = {{"accuracy", 0.5f, 0}, {"loss", 0.25f, 2}};
  IterationReport report;
  report.iter = 100;
  report.loss = 0.23f;
  report.seconds = 8;
  report.iterations = 100;
  report.rate = 0.00992565f;
  report.outputs = outputs;
  log_->OnIteration(report);
  EXPECT_THAT(collected_.lines,
              ElementsAre("Iteration 100 (12.5 iter/s, 8s/100 iters), loss = 0.23",
                          "    Train net output #0: accuracy = 0.5",
                          "    Train net output #1: loss = 0.25 (* 2 = 0.5 loss)",
                          "Iteration 100, lr = 0.00992565"));
}

TEST_F(LogObserverTest, TheFirstIterationClaimsNoSpeed) {
  IterationReport report;
  report.seconds = 0.5;
  log_->OnIteration(report);
  EXPECT_EQ(collected_.lines.at(0), "Iteration 0 (0 iter/s, 0.5s/0 iters), loss = 0");
}

TEST_F(LogObserverTest, TheFirstLineOfAResumedRunClaimsNoSpeed) {
  IterationReport report;
  report.iter = 500;
  report.seconds = 0.5;
  report.loss = 2.5;
  log_->OnIteration(report);
  EXPECT_EQ(collected_.lines.at(0), "Iteration 500, loss = 2.5");
}

TEST_F(LogObserverTest, SeveralReplicasHaveALineOfTheirTime) {
  RanksReport report;
  report.computing = 0.725;
  report.exchange = 0.2;
  report.data = 0.075;
  log_->OnRanks(report);
  report.slowest = "rank 1 (node7, process 4711)";
  report.cost = 0.31;
  log_->OnRanks(report);
  report.slowest_data = 0.25;
  log_->OnRanks(report);
  report.slowest.clear();
  report.hidden = 0.625;
  log_->OnRanks(report);
  const std::string shares =
      "    Ranks: 73 % computing, 20 % waiting for sums, 8 % waiting for data";
  const std::string slowest =
      shares + "; the others waited 31 % of their time for rank 1 (node7, process 4711)";
  EXPECT_THAT(collected_.lines,
              ElementsAre(shares, slowest, slowest + ", which itself waited 25 % for data",
                          "    Ranks: 73 % computing, 20 % waiting for sums (63 % of their time "
                          "overlapped with computation), 8 % waiting for data"));
}

TEST_F(LogObserverTest, ATestHasItsMeans) {
  const std::vector<ReportedValue> outputs = {{"accuracy", 0.9868f, 0}};
  TestReport report;
  report.iter = 500;
  report.has_loss = true;
  report.loss = 0.04f;
  report.outputs = outputs;
  log_->OnTestStart(500, 0);
  log_->OnTest(report);
  EXPECT_THAT(collected_.lines, ElementsAre("Iteration 500, Testing net (#0)", "Test loss: 0.04",
                                            "    Test net output #0: accuracy = 0.9868"));
}

TEST_F(LogObserverTest, AnInterruptedTestSaysSo) {
  TestReport report;
  report.interrupted = true;
  log_->OnTest(report);
  EXPECT_THAT(collected_.lines, ElementsAre("Test interrupted."));
}

TEST_F(LogObserverTest, StartSnapshotAndEndHaveTheirLines) {
  log_->OnStart({"LeNet", "inv", 0, 10});
  log_->OnSnapshotStart({5, "a_iter_5.caffemodel", "a_iter_5.solverstate", ""});
  log_->OnEnd({});
  log_->OnEnd({.stopped_early = true});
  EXPECT_THAT(collected_.lines,
              ElementsAre("Solving LeNet", "Learning Rate Policy: inv",
                          "Snapshotting to binary proto file a_iter_5.caffemodel",
                          "Snapshotting solver state to binary proto file a_iter_5.solverstate",
                          "Optimization Done.", "Optimization stopped early."));
}

TEST_F(LogObserverTest, NamesMakeNoLinesOfTheirOwn) {
  log_->OnStart({"a\nSolving b\x1b[2J", "inv", 0, 10});
  log_->OnSnapshotStart({5, "a\nSnapshotting to b", "s", ""});
  for (const std::string& line : collected_.lines) {
    EXPECT_EQ(line.find_first_of("\n\x1b"), std::string::npos) << line;
  }
}

TEST_F(LogObserverTest, AveragedWeightsHaveTheirOwnLine) {
  log_->OnSnapshotStart({5, "a.caffemodel", "a.solverstate", "a.averaged.caffemodel"});
  EXPECT_THAT(collected_.lines,
              ElementsAre("Snapshotting to binary proto file a.caffemodel",
                          "Snapshotting averaged weights to binary proto file "
                          "a.averaged.caffemodel",
                          "Snapshotting solver state to binary proto file a.solverstate"));
}

TEST_F(LogObserverTest, Hdf5SnapshotsAreCalledSo) {
  log_->OnSnapshotStart({5, "a.caffemodel.h5", "a.solverstate.h5", ""});
  EXPECT_THAT(collected_.lines,
              ElementsAre("Snapshotting to HDF5 file a.caffemodel.h5",
                          "Snapshotting solver state to HDF5 file a.solverstate.h5"));
}

TEST_F(LogObserverTest, TheLineAfterTheLastUpdateHasOnlyTheLoss) {
  IterationReport report;
  report.iter = 10;
  report.loss = 0.5f;
  report.after_last = true;
  log_->OnIteration(report);
  EXPECT_THAT(collected_.lines, ElementsAre("Iteration 10, loss = 0.5"));
}

}  // namespace
}  // namespace trainer
