// Several ranks as users start them: with --ranks on one machine, and with mpirun where it is found.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <regex>

#include "job.h"
#include "support/source_folder.h"
#include "trainer/checkpoint/model_file.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// LeNet on batches of 16 digits for 20 iterations.
class RanksTest : public testing::Test {
 protected:
  RanksTest() {
    std::string net = ReadText(SourceFolder() + "/models/lenet/train_test.prototxt");
    net = Edited(net, "data/digits/train_lmdb", "data/train_lmdb");
    net = Edited(net, "data/digits/test_lmdb", "data/test_lmdb");
    net = Edited(net, "batch_size: 64", "batch_size: 16");
    job_.net = Edited(net, "batch_size: 100", "batch_size: 20");
    job_.solver = Edited(job_.solver, "base_lr: 0.05", "base_lr: 0.01");
    job_.Write();
  }

  Outcome Train(const std::vector<std::string>& more, std::vector<std::string> launcher = {}) const {
    RunOptions options = job_.options();
    options.launcher = std::move(launcher);
    return RunProgram(job_.TrainCommand(more), options);
  }

  std::string Bytes(const std::string& name) const { return ReadText(job_.folder() / name); }

  // All weights of a snapshot, one after the other.
  std::vector<float> Weights(const std::string& name) const {
    std::vector<float> weights;
    for (const caffe::LayerParameter& layer : ReadModel(job_.folder() / name).layer()) {
      for (const caffe::BlobProto& blob : layer.blobs()) {
        weights.insert(weights.end(), blob.data().begin(), blob.data().end());
      }
    }
    return weights;
  }

  void ExpectNear(const std::vector<float>& a, const std::vector<float>& b, float bound) const {
    ASSERT_EQ(a.size(), b.size());
    ASSERT_FALSE(a.empty());
    float worst = 0;
    for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
    EXPECT_LT(worst, bound);
  }

  static constexpr char kLast[] = "snap_iter_20.caffemodel";
  Job job_;
};

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
  EXPECT_EQ(err.find("Optimization Done."), err.rfind("Optimization Done."));
  EXPECT_THAT(job_.Files("."), IsEmpty());
}

TEST_F(RanksTest, ScaleTheRateWhenAskedTo) {
  const Outcome outcome = Train({"--ranks=2", "--scale_lr"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("--scale_lr: base_lr is 0.02, 2 times 0.01; the rate rises to "
                                     "it over the first 1 iterations"));
  EXPECT_THAT(outcome.err, HasSubstr("Batch of an iteration: 32 (2 ranks, batch_size 16 each)"));
}

TEST_F(RanksTest, SayABadNetOnce) {
  job_.net = Edited(job_.net, "type: \"Pooling\"", "type: \"Poling\"");
  job_.Write();
  const Outcome outcome = Train({"--ranks=3"});
  EXPECT_EQ(outcome.exit_code, 78);
  EXPECT_THAT(outcome.Errors(), ElementsAre(AllOf(HasSubstr("rank "), HasSubstr("Poling"))));
}

TEST_F(RanksTest, RefuseABatchThatTheyCannotDivide) {
  const Outcome outcome = Train({"--ranks=3", "--global_batch"});
  EXPECT_EQ(outcome.exit_code, 64);
  EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr("batch_size 16, which 3 ranks cannot divide")));
  EXPECT_EQ(Train({"--ranks=2", "--global_batch", "--scale_lr"}).exit_code, 64);
}

// Runs of many iterations, which tests interrupt.
class LongRanksTest : public RanksTest {
 protected:
  LongRanksTest() {
    job_.solver = Edited(job_.solver, "max_iter: 20", "max_iter: 1000000");
    job_.solver = Edited(job_.solver, "test_interval: 10", "test_interval: 1000000");
    job_.solver = Edited(job_.solver, "snapshot: 10", "snapshot: 0");
    job_.Write();
  }

  // Started, with iterations done.
  std::unique_ptr<Program> Start(const std::vector<std::string>& more,
                                 std::vector<std::string> launcher = {}) {
    RunOptions options = job_.options();
    options.launcher = std::move(launcher);
    auto program = std::make_unique<Program>(job_.TrainCommand(more), options);
    for (const char* rank : {"rank 0 (", "rank 1 ("}) {
      const std::string line = program->WaitForLine(rank);
      std::smatch found;
      EXPECT_TRUE(std::regex_search(line, found, std::regex("process ([0-9]+)")));
      processes_.push_back(std::stoi(found[1]));
    }
    program->WaitForLine("Iteration 10");
    return program;
  }

  // Waits for the end of what nobody here can wait for.
  void ExpectAllGone() const {
    for (const pid_t process : processes_) {
      for (int i = 0; i < 600 && kill(process, 0) == 0; ++i) usleep(50'000);
      EXPECT_NE(kill(process, 0), 0) << "process " << process << " is still there";
    }
    EXPECT_THAT(job_.Files("."), IsEmpty());
  }

  std::vector<pid_t> processes_;
};

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

TEST_F(LongRanksTest, EndWith82WhenOneIsKilled) {
  for (const size_t victim : {0u, 1u}) {
    processes_.clear();
    const auto program = Start({"--ranks=2"});
    kill(processes_[victim], SIGKILL);
    const Outcome outcome = program->Wait();
    EXPECT_EQ(outcome.exit_code, 82) << outcome.err;
    ASSERT_EQ(outcome.Errors().size(), 1u) << outcome.err;
    EXPECT_THAT(outcome.Errors()[0],
                AllOf(HasSubstr(victim == 0 ? "rank 0 " : "rank 1 "), HasSubstr("signal 9")));
    for (const std::string& lock : job_.Files(".")) unlink((job_.folder() / lock).c_str());
    ExpectAllGone();
  }
}

TEST_F(LongRanksTest, EndWith82WhenOneIsSilent) {
  const auto program = Start({"--ranks=2", "--peer_warning=1", "--peer_timeout=3"});
  kill(processes_[1], SIGSTOP);
  const Outcome outcome = program->Wait();
  EXPECT_EQ(outcome.exit_code, 82) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("Waiting for rank 1 ("));
  EXPECT_THAT(outcome.Errors(), ElementsAre(AllOf(HasSubstr("rank 1 ("), HasSubstr("silent for"))));
  ExpectAllGone();
}

TEST_F(LongRanksTest, EndWithTheirLauncher) {
  const auto program = Start({"--ranks=2"});
  program->Signal(SIGKILL);
  ExpectAllGone();
}

// Open MPI's mpirun, as root and with more ranks than cores.
std::vector<std::string> MpiRun(int ranks) {
  return {"mpirun", "--allow-run-as-root", "--oversubscribe", "-np", std::to_string(ranks)};
}

#define SKIP_WITHOUT_MPIRUN()                                                       \
  if (std::system("mpirun --version >/dev/null 2>&1") != 0) {                      \
    GTEST_SKIP() << "there is no mpirun here";                                     \
  }

TEST_F(RanksTest, OfMpirunLearnWhatOneLearns) {
  SKIP_WITHOUT_MPIRUN();
  ASSERT_EQ(Train({}).exit_code, 0);
  const std::vector<float> one = Weights(kLast);
  const Outcome outcome = Train({"--global_batch"}, MpiRun(2));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("2 ranks on 1 machine; sums through shared memory"));
  ExpectNear(Weights(kLast), one, 1e-5f);
}

// The launcher of `first` ranks that count as one machine and `second` as another.
TEST_F(RanksTest, OfSeveralMachinesLearnWhatOneLearns) {
  SKIP_WITHOUT_MPIRUN();
  ASSERT_EQ(Train({}).exit_code, 0);
  const std::vector<float> one = Weights(kLast);
  const std::vector<std::string> command = job_.TrainCommand({"--global_batch"});
  for (const int each : {1, 2}) {
    std::vector<std::string> launcher = MpiRun(each);
    launcher.insert(launcher.end(), {"-x", "TRAINER_MACHINE=a", ProgramPath()});
    launcher.insert(launcher.end(), command.begin(), command.end());
    launcher.insert(launcher.end(),
                    {":", "-np", std::to_string(each), "-x", "TRAINER_MACHINE=b"});
    const Outcome outcome = Train({"--global_batch"}, launcher);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(" ranks on 2 machines; sums through "));
    ExpectNear(Weights(kLast), one, 1e-5f);
    const std::string bytes = Bytes(kLast);
    ASSERT_EQ(Train({"--global_batch"}, launcher).exit_code, 0);
    EXPECT_EQ(Bytes(kLast), bytes);
  }
}

TEST_F(RanksTest, WithAnotherSolverAreRefused) {
  SKIP_WITHOUT_MPIRUN();
  std::vector<std::string> launcher = MpiRun(1);
  const std::vector<std::string> command = job_.TrainCommand({"--set", "base_lr=0.25"});
  launcher.push_back(ProgramPath());
  launcher.insert(launcher.end(), command.begin(), command.end());
  launcher.insert(launcher.end(), {":", "-np", "1"});
  const Outcome outcome = Train({}, launcher);
  EXPECT_EQ(outcome.exit_code, 76) << outcome.err;
  EXPECT_THAT(outcome.Errors(),
              ElementsAre(AllOf(HasSubstr("do not agree on the solver and its nets: rank 0 ("),
                                HasSubstr("'base_lr: 0.25'"), HasSubstr("'base_lr: 0.01'"))));
}

TEST_F(RanksTest, OfMpirunRefuseToStartOthers) {
  SKIP_WITHOUT_MPIRUN();
  const Outcome outcome = Train({"--ranks=2"}, MpiRun(2));
  EXPECT_EQ(outcome.exit_code, 64);
  EXPECT_THAT(outcome.err, HasSubstr("mpirun or srun has started the ranks"));
}

TEST_F(LongRanksTest, OfMpirunEndWhenOneFails) {
  SKIP_WITHOUT_MPIRUN();
  const auto program = Start({}, MpiRun(2));
  kill(processes_[1], SIGKILL);
  const Outcome outcome = program->Wait();
  EXPECT_NE(outcome.exit_code, 0);
  for (const std::string& lock : job_.Files(".")) unlink((job_.folder() / lock).c_str());
  ExpectAllGone();
}

TEST_F(RanksTest, OfMpirunSayABadNetOnceAndEnd) {
  SKIP_WITHOUT_MPIRUN();
  job_.net = Edited(job_.net, "type: \"Pooling\"", "type: \"Poling\"");
  job_.Write();
  const Outcome outcome = Train({}, MpiRun(2));
  EXPECT_EQ(outcome.exit_code, 78) << outcome.err;
  EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr("Poling")));
}

TEST(LoneTaskTest, IsToldHowToTrainWithAllTasks) {
  Job job;
  job.Write();
  RunOptions options = job.options();
  options.env.push_back("SLURM_NTASKS=4");
  const Outcome outcome = RunProgram(job.TrainCommand(), options);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("SLURM_NTASKS is 4, and this run is alone"));
}

}  // namespace
}  // namespace trainer
