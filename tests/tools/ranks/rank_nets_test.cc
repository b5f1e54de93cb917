// Reports of several ranks of `trainer train`: the numbers of one rank, the ranks' times, logs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "rank_job.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class RankNetsTest : public RankJob {
 protected:
  // Returns the numbers after `name` in the lines of the log that contain `part`.
  static std::vector<float> Numbers(const Outcome& outcome, const std::string& part,
                                    const std::string& name) {
    std::vector<float> numbers;
    for (const std::string& line : outcome.ErrLines()) {
      const size_t at = line.find(name);
      if (line.find(part) == line.npos || at == line.npos) continue;
      numbers.push_back(std::stof(line.substr(at + name.size())));
    }
    return numbers;
  }

  // Expects equal losses and tests of 1, 2 and 4 ranks with one batch.
  void ExpectLossesOfOne(const std::vector<std::string>& more) {
    job_.solver = Edited(job_.solver, "display: 5", "display: 1");
    job_.Write();
    const Outcome one = Train(more);
    ASSERT_EQ(one.exit_code, 0) << one.err;
    const std::vector<float> losses = Numbers(one, "] Iteration", "loss = ");
    ASSERT_EQ(losses.size(), 21u) << one.err;
    for (const char* ranks : {"--ranks=2", "--ranks=4"}) {
      std::vector<std::string> flags = more;
      flags.insert(flags.end(), {ranks, "--global_batch"});
      const Outcome all = Train(flags);
      ASSERT_EQ(all.exit_code, 0) << all.err;
      ExpectNear(Numbers(all, "] Iteration", "loss = "), losses, 2e-4f);
      ExpectNear(Numbers(all, "Test net output", "loss = "),
                 Numbers(one, "Test net output", "loss = "), 1e-3f);
    }
  }

  static std::vector<std::string> TestLines(const Outcome& outcome) {
    std::vector<std::string> lines;
    for (const std::string& line : outcome.ErrLines()) {
      const size_t at = line.find("Test ");
      if (at != line.npos && line.find("est net (#") == line.npos) lines.push_back(line.substr(at));
    }
    return lines;
  }
};

using LongRankNetsTest = LongRankJob;

TEST_F(RankNetsTest, LeNetHasTheLossesOfOneRank) { ExpectLossesOfOne({}); }

TEST_F(RankNetsTest, ANetWithIgnoredLabelsHasTheLossesOfOneRank) {
  job_.net = Edited(job_.net, "type: \"SoftmaxWithLoss\"",
                    "type: \"SoftmaxWithLoss\" loss_param { ignore_label: 3 }");
  ExpectLossesOfOne({});
}

TEST_F(RankNetsTest, ANetWithSynchronizedBatchNormHasTheLossesOfOneRank) {
  job_.net = Edited(job_.net, "layer {\n  name: \"pool1\"", R"(layer {
  name: "bn1" type: "BatchNorm" bottom: "conv1" top: "conv1"
}
layer {
  name: "scale1" type: "Scale" bottom: "conv1" top: "conv1" scale_param { bias_term: true }
}
layer {
  name: "pool1")");
  ExpectLossesOfOne({"--sync_batch_norm"});
}

// With a rate of 0, tests differ only in their batches.
TEST_F(RankNetsTest, PrintTheTestsOfOneRankToTheLastDigit) {
  job_.solver = Edited(job_.solver, "base_lr: 0.01", "base_lr: 0");
  job_.solver = Edited(job_.solver, "test_iter: 3", "test_iter: 5 test_compute_loss: true");
  job_.Write();
  const std::vector<std::string> one = TestLines(Train({}));
  ASSERT_EQ(one.size(), 9u);
  for (const char* ranks : {"--ranks=2", "--ranks=3", "--ranks=4"}) {
    EXPECT_THAT(TestLines(Train({ranks})), ElementsAreArray(one)) << ranks;
  }
  for (const char* ranks : {"--ranks=1", "--ranks=3"}) {
    const Outcome resumed = Train({"--snapshot=snap_iter_10.solverstate", ranks});
    EXPECT_THAT(TestLines(resumed), ElementsAreArray(one.begin() + 3, one.end())) << ranks;
  }
}

TEST_F(RankNetsTest, SayWhereTheirTimeGoes) {
  const Outcome one = Train({});
  EXPECT_THAT(one.err, Not(HasSubstr("Ranks: ")));
  const Outcome two = Train({"--ranks=2"});
  EXPECT_TRUE(Finds(two.err,
                    "    Ranks: [0-9]+ % computing, [0-9]+ % waiting for sums, [0-9]+ % waiting "
                    "for data"))
      << two.err;
}

TEST_F(RankNetsTest, LogEachInAFileOfItsOwnWhenAskedTo) {
  const Outcome outcome = Train({"--ranks=3", "--log_all_ranks"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err.find("Iteration 10, lr"), outcome.err.rfind("Iteration 10, lr"));
  EXPECT_THAT(job_.Files("snap_rank"), ElementsAre("snap_rank_1.log", "snap_rank_2.log"));
  for (const char* rank : {"1", "2"}) {
    EXPECT_THAT(Bytes(std::string("snap_rank_") + rank + ".log"),
                AllOf(HasSubstr(std::string("rank ") + rank + " ("), HasSubstr("Iteration 10, lr"),
                      HasSubstr("Optimization Done.")));
  }
}

TEST_F(LongRankNetsTest, NameTheRankForWhichTheOthersWait) {
  const auto program = Start({"--ranks=2"});
  // Rank 1 is slowed down until the log names it: if other programs use the cores, rank 0 may be
  // the slower one at first.
  std::jthread slow([pid = processes_[1]](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      kill(pid, SIGSTOP);
      usleep(150'000);
      kill(pid, SIGCONT);
      usleep(30'000);
    }
  });
  EXPECT_THAT(program->WaitForLine("of their time for rank 1 ("), HasSubstr("Ranks: "));
  slow = {};
  program->Signal(SIGTERM);
  EXPECT_EQ(program->Wait().exit_code, 75);
  ExpectAllGone();
}

TEST_F(LongRankNetsTest, StopInTheMiddleOfATestAndGoOn) {
  job_.solver = Edited(job_.solver, "test_interval: 1000000", "test_interval: 20");
  job_.solver =
      Edited(job_.solver, "test_iter: 3", "test_iter: 1000000 test_initialization: false");
  job_.Write();
  const auto program = Start({"--ranks=2"});
  program->WaitForLine("Iteration 20, Testing net (#0)");
  kill(processes_[1], SIGTERM);
  const Outcome outcome = program->Wait();
  EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("Test interrupted."), HasSubstr("stopped the run at iteration 20")));
  EXPECT_THAT(job_.Files("snap_iter"),
              ElementsAre("snap_iter_20.caffemodel", "snap_iter_20.solverstate"));
  ExpectAllGone();
}

}  // namespace
}  // namespace trainer
