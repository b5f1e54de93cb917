#pragma once
// LeNet on a few digits, trained by several ranks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <regex>
#include <stdexcept>

#include "job.h"
#include "support/source_folder.h"
#include "trainer/checkpoint/model_file.h"

namespace trainer {

// LeNet on batches of 16 digits for 20 iterations.
class RankJob : public testing::Test {
 protected:
  RankJob() {
    std::string net = ReadText(SourceFolder() + "/models/lenet/train_test.prototxt");
    net = Edited(net, "data/digits/train_lmdb", "data/train_lmdb");
    net = Edited(net, "data/digits/test_lmdb", "data/test_lmdb");
    net = Edited(net, "batch_size: 64", "batch_size: 16");
    job_.net = Edited(net, "batch_size: 100", "batch_size: 20");
    job_.solver = Edited(job_.solver, "base_lr: 0.05", "base_lr: 0.01");
    // With this seed, no two values of a pooling window are so close that another order of the sums
    // changes which one wins; after that, the runs would differ by more than rounding errors.
    job_.solver = Edited(job_.solver, "random_seed: 7", "random_seed: 3");
    job_.Write();
  }

  Outcome Train(const std::vector<std::string>& more,
                std::vector<std::string> launcher = {}) const {
    RunOptions options = job_.options();
    options.launcher = std::move(launcher);
    return RunProgram(job_.TrainCommand(more), options);
  }

  // Returns an mpirun launcher for two simulated machines with `each` ranks: all processes run on
  // this machine, but TRAINER_MACHINE gives them two names.
  static std::vector<std::string> TwoMachines(const std::vector<std::string>& command, int each) {
    const std::string ranks = std::to_string(each);
    std::vector<std::string> launcher = {
        "mpirun", "--allow-run-as-root", "--oversubscribe", "-np", ranks,
        "-x",     "TRAINER_MACHINE=a",   ProgramPath()};
    launcher.insert(launcher.end(), command.begin(), command.end());
    launcher.insert(launcher.end(), {":", "-np", ranks, "-x", "TRAINER_MACHINE=b"});
    return launcher;
  }
  Outcome TrainOnTwo(const std::vector<std::string>& more, int each = 1) const {
    return Train(more, TwoMachines(job_.TrainCommand(more), each));
  }

  std::string Bytes(const std::string& name) const { return ReadText(job_.folder() / name); }

  // Returns all weights of a snapshot, concatenated.
  std::vector<float> Weights(const std::string& name) const {
    std::vector<float> weights;
    const caffe::NetParameter net = ReadModel(job_.folder() / name);
    for (const caffe::LayerParameter& layer : net.layer()) {
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
    for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::fabs(a[i] - b[i]));
    EXPECT_LT(worst, bound);
  }

  static constexpr char kLast[] = "snap_iter_20.caffemodel";
  Job job_;
};

// Starts, interrupts and awaits ranks of a job whose runs do not end by themselves.
template <class JobOfRanks>
class RunsOfRanks : public JobOfRanks {
 protected:
  // Starts a run and returns it after its tenth iteration.
  std::unique_ptr<RunningProgram> Start(const std::vector<std::string>& more,
                                        std::vector<std::string> launcher = {}) {
    if (auto program = TryToStart(more, std::move(launcher))) return program;
    throw std::runtime_error("the run ended before its tenth iteration:\n" + ended_.err);
  }

  // Does the same with a peer timeout of `*seconds`. If other programs use the cores, a rank may
  // need longer to start: then the run is started again with ten times the timeout.
  std::unique_ptr<RunningProgram> StartImpatient(std::vector<std::string> more, int* seconds) {
    more.push_back("");
    for (const int factor : {1, 10}) {
      *seconds *= factor;
      more.back() = "--peer_timeout=" + std::to_string(*seconds);
      if (auto program = TryToStart(more, {})) return program;
    }
    throw std::runtime_error("the run ended before its tenth iteration:\n" + ended_.err);
  }

  // Waits until the ranks, which are not this process's children, have ended, and expects no
  // temporary file.
  void ExpectAllGone() const {
    AwaitAllGone();
    EXPECT_THAT(this->job_.Files("."), testing::IsEmpty());
  }
  // Waits in the same way for killed ranks, and removes the lock that they leave.
  void RemoveWhatIsLeft() const {
    AwaitAllGone();
    for (const std::string& lock : this->job_.Files(".")) {
      unlink((this->job_.folder() / lock).c_str());
    }
  }

  std::vector<pid_t> processes_;

 private:
  // Returns null if the run ends before.
  std::unique_ptr<RunningProgram> TryToStart(const std::vector<std::string>& more,
                                             std::vector<std::string> launcher) {
    processes_.clear();
    RunOptions options = this->job_.options();
    options.launcher = std::move(launcher);
    auto program = std::make_unique<RunningProgram>(this->job_.TrainCommand(more), options);
    for (const char* rank : {"rank 0 (", "rank 1 ("}) {
      const std::string line = program->FindLine(rank);
      std::smatch found;
      if (!std::regex_search(line, found, std::regex("process ([1-9][0-9]*)"))) break;
      processes_.push_back(std::stoi(found[1]));
    }
    if (processes_.size() == 2 && !program->FindLine("Iteration 10").empty()) return program;
    program->Signal(SIGKILL);
    ended_ = program->Wait();
    return nullptr;
  }

  void AwaitAllGone() const {
    for (const pid_t process : processes_) {
      EXPECT_TRUE(Await([&] { return HasEnded(process); }))
          << "process " << process << " is still there";
    }
  }

  Outcome ended_;  // of a run that ended before its tenth iteration
};

// A job of many iterations, for tests that interrupt its runs.
class LongRankJob : public RunsOfRanks<RankJob> {
 protected:
  LongRankJob() {
    job_.solver = Edited(job_.solver, "max_iter: 20", "max_iter: 1000000");
    job_.solver = Edited(job_.solver, "test_interval: 10", "test_interval: 1000000");
    job_.solver = Edited(job_.solver, "snapshot: 10", "snapshot: 0");
    job_.Write();
  }
};

}  // namespace trainer
