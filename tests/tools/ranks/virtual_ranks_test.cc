// virtual_ranks: any number of ranks writes the same files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "in_process.h"
#include "rank_job.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kVirtual[] = "virtual_ranks=4";
constexpr char kNormAndDropout[] = R"(layer {
  name: "norm" type: "BatchNorm" bottom: "conv1" top: "conv1"
}
layer {
  name: "drop" type: "Dropout" bottom: "conv1" top: "conv1"
}
)";
// A recurrent layer, in addition to the digits' net.
constexpr char kSequences[] = R"(layer {
  name: "noise" type: "DummyData" top: "x" top: "cont" top: "target" include { phase: TRAIN }
  dummy_data_param { shape { dim: 2 dim: 3 dim: 4 } shape { dim: 2 dim: 3 }
                     shape { dim: 2 dim: 3 dim: 5 } data_filler { type: "gaussian" }
                     data_filler { value: 1 } data_filler { type: "gaussian" } }
}
layer {
  name: "lstm" type: "LSTM" bottom: "x" bottom: "cont" top: "lstm" include { phase: TRAIN }
  recurrent_param { num_output: 5 weight_filler { type: "xavier" } }
}
layer {
  name: "far" type: "EuclideanLoss" bottom: "lstm" bottom: "target" top: "far"
  include { phase: TRAIN }
}
)";

// LeNet on mirrored digits with batch norm, dropout and an LSTM.
class VirtualRanksTest : public RankJob {
 protected:
  VirtualRanksTest() {
    const std::string pool = "layer {\n  name: \"pool1\"";
    job_.net = Edited(job_.net, pool, kNormAndDropout + pool) + kSequences;
    job_.net = Edited(job_.net, "scale: 0.00390625", "scale: 0.00390625 mirror: true");
    job_.solver = Edited(job_.solver, "max_iter: 20", "max_iter: 8");
    job_.solver = Edited(job_.solver, "snapshot: 10", "snapshot: 4");
    job_.solver = Edited(job_.solver, "test_interval: 10", "test_interval: 4");
    job_.solver = Edited(job_.solver, "display: 5", "display: 2");
    job_.Write();
  }

  struct Files {
    std::string model, state, model4, state4;
    bool operator==(const Files&) const = default;
  };
  Files TakeFiles() const {
    return {Bytes("snap_iter_8.caffemodel"), Bytes("snap_iter_8.solverstate"),
            Bytes("snap_iter_4.caffemodel"), Bytes("snap_iter_4.solverstate")};
  }

  // Returns the lines with losses and accuracies.
  static std::vector<std::string> Numbers(const Outcome& outcome) {
    std::vector<std::string> lines;
    for (const std::string& line : outcome.ErrLines()) {
      const size_t at = line.find("] ");
      const bool tells = line.find("loss = ") != line.npos || line.find("accuracy = ") != line.npos;
      if (at == line.npos || !tells) continue;
      lines.push_back(std::regex_replace(line.substr(at), std::regex(" \\(.*iter/s.*\\)"), ""));
    }
    return lines;
  }
};

TEST_F(VirtualRanksTest, WriteTheSameFilesOnAnyNumberOfRanks) {
  const Outcome one = Train({"--set", kVirtual});
  ASSERT_EQ(one.exit_code, 0) << one.err;
  EXPECT_THAT(one.err, HasSubstr("Batch of an iteration: 64 (4 virtual ranks on one rank, "
                                 "batch_size 16 each)"));
  EXPECT_THAT(one.err, HasSubstr("virtual_ranks 4: each rank computes 4 parts of every batch, one "
                                 "after the other, and needs "));
  const Files files = TakeFiles();
  for (const char* ranks : {"--ranks=2", "--ranks=4"}) {
    const Outcome outcome = Train({"--set", kVirtual, ranks, "--bucket_size=16"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_TRUE(TakeFiles() == files) << ranks;
    EXPECT_EQ(Numbers(outcome), Numbers(one));
  }
  ASSERT_EQ(Train({"--ranks=4"}).exit_code, 0);
  EXPECT_TRUE(Bytes("snap_iter_8.caffemodel") == files.model) << "without virtual ranks";
}

TEST_F(VirtualRanksTest, GoOnAnywhereAndEndWithTheSameBits) {
  ASSERT_EQ(Train({"--set", kVirtual, "--ranks=4", "--set", "iter_size=2"}).exit_code, 0);
  const Files files = TakeFiles();
  for (const char* ranks : {"--ranks=1", "--ranks=2"}) {
    const Outcome outcome = Train(
        {"--snapshot=snap_iter_4.solverstate", "--set", kVirtual, ranks, "--set", "iter_size=2"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_TRUE(TakeFiles() == files) << ranks;
  }
}

// Only rank 0 counts classes; each rank finds its records in the balanced order.
TEST_F(VirtualRanksTest, WriteTheSameFilesOfCorrectedClasses) {
  const std::string net = job_.net;
  for (const auto& [old, corrected] :
       {std::pair("train_lmdb\"", "train_lmdb\" sampling: BALANCED"),
        {"type: \"SoftmaxWithLoss\"",
         "type: \"SoftmaxWithLoss\" loss_param { class_weight_power: 1 }"}}) {
    job_.net = Edited(net, old, corrected);
    job_.Write();
    ASSERT_EQ(Train({"--set", kVirtual}).exit_code, 0);
    const Files files = TakeFiles();
    ASSERT_EQ(Train({"--set", kVirtual, "--ranks=4"}).exit_code, 0);
    EXPECT_TRUE(TakeFiles() == files) << corrected;
    ASSERT_EQ(
        Train({"--snapshot=snap_iter_4.solverstate", "--set", kVirtual, "--ranks=2"}).exit_code, 0);
    EXPECT_TRUE(TakeFiles() == files) << corrected << ", resumed";
  }
}

TEST_F(VirtualRanksTest, ShareTheBatchThatCountsForAll) {
  const Outcome outcome = Train({"--set", kVirtual, "--ranks=2", "--global_batch"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("Batch of an iteration: 16 (4 virtual ranks on 2 ranks, "
                                     "batch_size 4 each)"));
}

TEST_F(VirtualRanksTest, AreRefusedWhereRanksCannotShareThem) {
  for (const auto& [ranks, text] :
       {std::pair("--ranks=3", "and 3 ranks cannot share these parts evenly"),
        {"--ranks=8", "each needs a part of every batch"}}) {
    const Outcome outcome = Train({"--set", kVirtual, ranks});
    EXPECT_EQ(outcome.exit_code, 64) << outcome.err;
    EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr(text)));
  }
  const Outcome odd = Train({"--set", "virtual_ranks=3"});
  EXPECT_EQ(odd.exit_code, 78);
  EXPECT_THAT(odd.Errors(),
              ElementsAre(HasSubstr("virtual_ranks is 3; it must be a power of two")));
}

TEST_F(VirtualRanksTest, ShowWhatTheirSumsTake) {
  const Outcome outcome =
      RunHere({"plan", "--solver=solver.prototxt", "--set", kVirtual}, job_.options());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("sums of the 4 virtual ranks' parts, on one rank"));
}

// Returns Open MPI's launcher with ranks[i] ranks on machine i, and the run's command.
std::vector<std::string> OnMachines(const std::vector<int>& ranks,
                                    const std::vector<std::string>& command) {
  std::vector<std::string> launcher = {"mpirun", "--allow-run-as-root", "--oversubscribe"};
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0) launcher.insert(launcher.end(), {ProgramPath()});
    if (i > 0) launcher.insert(launcher.end(), command.begin(), command.end());
    if (i > 0) launcher.push_back(":");
    launcher.insert(launcher.end(), {"-np", std::to_string(ranks[i]), "-x",
                                     "TRAINER_MACHINE=" + std::to_string(i)});
  }
  return launcher;
}

TEST_F(VirtualRanksTest, WriteTheSameFilesOnSeveralMachines) {
  if (std::system("mpirun --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no mpirun";
  ASSERT_EQ(Train({"--set", kVirtual}).exit_code, 0);
  const Files files = TakeFiles();
  const std::vector<std::string> command = job_.TrainCommand({"--set", kVirtual});
  for (const std::vector<int>& ranks : {std::vector{2, 2}, {1, 1}, {1, 1, 1, 1}}) {
    const Outcome outcome = Train({"--set", kVirtual}, OnMachines(ranks, command));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_TRUE(TakeFiles() == files) << ranks.size() << " machines";
  }
  const Outcome outcome = Train({"--set", kVirtual}, OnMachines({1, 3}, command));
  EXPECT_EQ(outcome.exit_code, 64);
  EXPECT_THAT(outcome.Errors(),
              ElementsAre(HasSubstr("the gradients of these ranks cannot be added in pairs: "
                                    "machine 1 has 3 ranks, but machine 0 has 1")));
}

}  // namespace
}  // namespace trainer
