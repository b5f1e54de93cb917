// Replicas that train one model together, here as threads of one process.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "rows_run.h"
#include "support/log_collector.h"
#include "support/test_device.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::ElementsAreArray;
using testing::FloatNear;
using testing::IsEmpty;
using testing::Pointwise;

struct LearnedRanks {
  std::vector<float> weights, losses, tests;
  std::vector<int> snapshots;
  int waited = 0;
};

// Spec replaces "BATCH" in a net by the batch of each replica and "ROWS" by the data.
class ReplicasTest : public testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  void SetUp() override { TRAINER_CPU_ONLY("the threads sum arrays of the host"); }

  SolverSpec Spec(const std::string& net, const std::string& fields, int batch) const {
    return folder_.Spec(net, "base_lr: 0.1 momentum: 0.9 weight_decay: 0.01 " + fields, batch);
  }

  static LearnedRanks Run(const SolverSpec& spec, SolverOptions options) {
    const auto device = MakeTestDevice(1);
    RecordingObserver observer;
    Solver solver(spec, options, *device, observer);
    EXPECT_EQ(solver.Solve(), SolveResult::kFinished);
    return {WeightsOf(solver, *device), observer.losses, observer.tests, observer.snapshots};
  }

  static std::vector<LearnedRanks> RunAll(const SolverSpec& spec, int count, bool eager = true,
                                          const std::string& snapshot = "") {
    std::vector<LearnedRanks> learned(static_cast<size_t>(count));
    RunRanks(count, eager, snapshot, [&](const SolverOptions& options, ThreadGroup& group) {
      LearnedRanks& own = learned[static_cast<size_t>(group.rank().rank)];
      own = Run(spec, options);
      own.waited = group.waited;
    });
    return learned;
  }

  // Expects replicas with small batches to learn what one replica with the whole batch learns.
  void ExpectLikeOne(const std::string& net, const std::string& fields) const {
    const auto [count, eager] = GetParam();
    constexpr int kBatch = 3;
    const LearnedRanks one = Run(Spec(net, fields, count * kBatch), {});
    const std::vector<LearnedRanks> all = RunAll(Spec(net, fields, kBatch), count, eager);
    EXPECT_THAT(all[0].weights, Pointwise(FloatNear(2e-6f), one.weights)) << fields;
    EXPECT_THAT(all[0].losses, Pointwise(FloatNear(2e-6f), one.losses)) << fields;
    EXPECT_THAT(all[0].tests, Pointwise(FloatNear(1e-4f), one.tests)) << fields;
    EXPECT_GT(all[0].waited, 1);
    for (const LearnedRanks& other : all) {
      EXPECT_THAT(other.weights, ElementsAreArray(all[0].weights)) << "bit for bit";
      EXPECT_THAT(other.losses, ElementsAreArray(all[0].losses));
    }
  }

  RowsFolder folder_;
};

std::string NameOf(const testing::TestParamInfo<std::tuple<int, bool>>& test) {
  const auto [count, eager] = test.param;
  return Join(count, eager ? "Eager" : "Lazy");
}

INSTANTIATE_TEST_SUITE_P(Of, ReplicasTest, testing::Combine(testing::Values(2, 4), testing::Bool()),
                         NameOf);

const char kReplicasNet[] = R"(
layer { name: "rows" type: "HDF5Data" top: "x" top: "label" include { phase: TRAIN }
        hdf5_data_param { source: "ROWS" batch_size: BATCH shuffle: true } }
layer { name: "test" type: "HDF5Data" top: "x" top: "label" include { phase: TEST }
        hdf5_data_param { source: "ROWS" batch_size: 13 } }
layer { name: "ip1" type: "InnerProduct" bottom: "x" top: "ip1"
        inner_product_param { num_output: 9 weight_filler { type: "xavier" } } }
layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
        inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
)";
constexpr char kReplicasTests[] = " random_seed: 3 max_iter: 12 test_iter: 2 test_interval: 5 ";

TEST_P(ReplicasTest, LearnWhatOneWithAllTheirBatchesLearns) {
  ExpectLikeOne(kReplicasNet, kReplicasTests);
  ExpectLikeOne(kReplicasNet, Join(kReplicasTests, "iter_size: 2 average_loss: 3 "));
  ExpectLikeOne(kReplicasNet, Join(kReplicasTests, "ema_decay: 0.9 type: 'Adam' "));
  ExpectLikeOne(kReplicasNet, Join(kReplicasTests, "decay_on_bias_and_norm: false "));
}

TEST_P(ReplicasTest, FollowTheCommonLossAsOneDoes) {
  const std::string fields = Join(kReplicasTests,
                                  "lr_policy: 'plateau' gamma: 0.5 plateau_winsize: 1 "
                                  "plateau_winsize: 1 plateau_winsize: 1 ");
  ExpectLikeOne(kReplicasNet, fields);
}

// The log has no such line if no layer draws numbers or only one rank trains.
TEST_P(ReplicasTest, SayWhichLayersDrawOtherNumbersOnEachRank) {
  const auto [count, eager] = GetParam();
  const auto lines = [&](const std::string& more, int ranks) {
    const SolverSpec spec = Spec(kReplicasNet + more, "random_seed: 3 max_iter: 1 ", 3);
    const LogCollector log;
    RunAll(spec, ranks, eager);
    std::vector<std::string> found;
    for (const std::string& line : log.lines) {
      if (line.starts_with("Each rank draws")) found.push_back(line);
    }
    return found;
  };
  const std::string drop = "layer { name: 'drop1' type: 'Dropout' bottom: 'ip2' top: 'drop1' }";
  EXPECT_THAT(
      lines(drop, count),
      testing::Contains("Each rank draws different random numbers in drop1: so this run differs "
                        "from a run of one rank with the same batch by more than rounding; "
                        "virtual_ranks makes the result independent of the number of ranks"));
  EXPECT_THAT(lines("", count), IsEmpty());
  EXPECT_THAT(lines(drop, 1), IsEmpty());
}

TEST_P(ReplicasTest, ClipAndScaleByNormsAsOneDoes) {
  ExpectLikeOne(kReplicasNet, Join(kReplicasTests, "clip_gradients: 0.5 "));
  ExpectLikeOne(kReplicasNet, Join(kReplicasTests, "clip_value: 0.02 larc: true larc_eta: 0.1 "));
  ExpectLikeOne(kReplicasNet, Join(kReplicasTests, "type: 'LARS' trust_coefficient: 0.1 "));
  ExpectLikeOne(
      kReplicasNet,
      Join(kReplicasTests, "clip_gradients: 0.5 snapshot_diff: true larc: true larc_eta: 0.1 "));
}

TEST_P(ReplicasTest, AgreeOnASeedThatNobodyGave) {
  const auto [count, eager] = GetParam();
  const std::vector<LearnedRanks> all = RunAll(Spec(kReplicasNet, "max_iter: 3 ", 3), count, eager);
  for (const LearnedRanks& other : all) EXPECT_EQ(other.weights, all[0].weights);
}

// The other ranks have another seed and would start from other weights.
TEST_P(ReplicasTest, StartFromTheWeightsOfRank0) {
  const auto [count, eager] = GetParam();
  const std::string fields = "max_iter: 1 random_seed: ";
  SolverSpec specs[] = {Spec(kReplicasNet, fields + "1 ", 3), Spec(kReplicasNet, fields + "2 ", 3)};
  std::vector<LearnedRanks> learned(static_cast<size_t>(count));
  RunRanks(count, eager, "", [&](const SolverOptions& options, ThreadGroup& group) {
    const int rank = group.rank().rank;
    learned[static_cast<size_t>(rank)] = Run(specs[rank > 0], options);
  });
  for (const LearnedRanks& other : learned) EXPECT_EQ(other.weights, learned[0].weights);
}

TEST_P(ReplicasTest, OfRank0TellsOfTestsAndWritesAlone) {
  const auto [count, eager] = GetParam();
  const std::vector<LearnedRanks> all =
      RunAll(Spec(kReplicasNet, Join(kReplicasTests, "snapshot: 8 "), 3), count, eager);
  EXPECT_THAT(all[0].snapshots, testing::ElementsAre(8, 12));
  EXPECT_FALSE(all[0].tests.empty());
  for (size_t rank = 1; rank < all.size(); ++rank) {
    EXPECT_THAT(all[rank].snapshots, IsEmpty());
    EXPECT_THAT(all[rank].tests, IsEmpty());
  }
}

// Regression: a rank that had lost its data ended the run while rank 0 was writing the last
// snapshot.
TEST_P(ReplicasTest, NoneEndsBeforeRank0HasWritten) {
  const auto [count, eager] = GetParam();
  const SolverSpec spec = Spec(kReplicasNet, "max_iter: 4 ", 3);
  RunRanks(count, eager, "", [&](const SolverOptions& options, ThreadGroup&) {
    Run(spec, options);
    EXPECT_TRUE(std::filesystem::exists(folder_ / "s_iter_4.solverstate"));
  });
}

// Each replica has its own sequences and masks.
const char kReplicasRecurrent[] = R"(
layer { name: "noise" type: "DummyData" top: "x" top: "cont" top: "y"
        dummy_data_param { shape { dim: 2 dim: BATCH dim: 4 } shape { dim: 2 dim: BATCH }
          shape { dim: 2 dim: BATCH dim: 3 } data_filler { type: "gaussian" }
          data_filler { type: "constant" value: 1 } data_filler { type: "gaussian" } } }
layer { name: "lstm" type: "LSTM" bottom: "x" bottom: "cont" top: "lstm"
        recurrent_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "bn" type: "BatchNorm" bottom: "lstm" top: "bn" }
layer { name: "drop" type: "Dropout" bottom: "bn" top: "drop" }
layer { name: "ip" type: "InnerProduct" bottom: "drop" top: "ip"
        inner_product_param { num_output: 3 axis: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "y" top: "loss" }
)";

TEST_P(ReplicasTest, GoOnFromTheirSnapshotBitForBit) {
  const auto [count, eager] = GetParam();
  const std::string fields = "random_seed: 3 average_loss: 3 ";
  const auto whole = RunAll(Spec(kReplicasRecurrent, fields + "max_iter: 9 ", 3), count, eager);
  RunAll(Spec(kReplicasRecurrent, fields + "max_iter: 4 ", 3), count, eager);
  const auto rest = RunAll(Spec(kReplicasRecurrent, fields + "max_iter: 9 ", 3), count, eager,
                           folder_ / "s_iter_4.solverstate");
  for (size_t rank = 0; rank < rest.size(); ++rank) {
    EXPECT_THAT(rest[rank].weights, ElementsAreArray(whole[rank].weights));
    const std::vector<float>& losses = whole[rank].losses;
    EXPECT_THAT(rest[rank].losses,
                ElementsAreArray(std::vector<float>(losses.begin() + 4, losses.end())));
  }
}

const char kReplicasAttention[] = R"(
layer { name: "rows" type: "HDF5Data" top: "x" top: "label"
        hdf5_data_param { source: "ROWS" batch_size: BATCH shuffle: true } }
layer { name: "sequence" type: "Reshape" bottom: "x" top: "sequence"
        reshape_param { shape { dim: 0 dim: 3 dim: 2 } } }
layer { name: "position" type: "Bias" bottom: "sequence" top: "position"
        bias_param { axis: 1 num_axes: 2 filler { type: "gaussian" std: 0.1 } } }
layer { name: "attention" type: "MultiHeadAttention" bottom: "position" top: "attention"
        attention_param { num_heads: 2 causal: true weight_filler { type: "xavier" } } }
layer { name: "norm" type: "LayerNorm" bottom: "attention" top: "norm"
        layer_norm_param { axis: 2 eps: 0.1 } }
layer { name: "pairs" type: "MatMul" bottom: "position" bottom: "norm" top: "pairs"
        matmul_param { transpose_a: true } }
layer { name: "ip" type: "InnerProduct" bottom: "pairs" top: "ip"
        inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)";

TEST_P(ReplicasTest, LearnAttentionAsOneDoesAndGoOnBitForBit) {
  const auto [count, eager] = GetParam();
  ExpectLikeOne(kReplicasAttention, "random_seed: 3 max_iter: 6 ");
  const auto fields = [](int iterations) {
    return Join("random_seed: 3 max_iter: ", iterations, " ");
  };
  const auto whole = RunAll(Spec(kReplicasAttention, fields(9), 3), count, eager);
  RunAll(Spec(kReplicasAttention, fields(4), 3), count, eager);
  const auto rest = RunAll(Spec(kReplicasAttention, fields(9), 3), count, eager,
                           folder_ / "s_iter_4.solverstate");
  for (size_t rank = 0; rank < rest.size(); ++rank) {
    EXPECT_THAT(rest[rank].weights, ElementsAreArray(whole[rank].weights));
  }
}

// The saved data position counts the batches of all replicas, so the same replicas or one replica
// with all their batches can resume.
TEST_P(ReplicasTest, GoOnWhereTheDataStoppedInAnyNumber) {
  const auto [count, eager] = GetParam();
  const auto fields = [](int iterations) {
    return Join("random_seed: 3 max_iter: ", iterations, " ");
  };
  const auto whole = RunAll(Spec(kReplicasNet, fields(9), 3), count, eager);
  RunAll(Spec(kReplicasNet, fields(4), 3), count, eager);
  SolverOptions options;
  options.snapshot = folder_ / "s_iter_4.solverstate";
  const auto rest = RunAll(Spec(kReplicasNet, fields(9), 3), count, eager, options.snapshot);
  for (size_t rank = 0; rank < rest.size(); ++rank) {
    EXPECT_THAT(rest[rank].weights, ElementsAreArray(whole[rank].weights));
  }
  const LearnedRanks one = Run(Spec(kReplicasNet, fields(9), 3 * count), options);
  EXPECT_THAT(one.weights, Pointwise(FloatNear(2e-6f), whole[0].weights));
}

TEST_P(ReplicasTest, OfAnotherNumberGoOnWithoutTheStatesOfTheFirst) {
  const auto [count, eager] = GetParam();
  const std::string fields = "random_seed: 3 ";
  RunAll(Spec(kReplicasRecurrent, fields + "max_iter: 4 ", 3), count, eager);
  const caffe::SolverState state = ReadState(folder_ / "s_iter_4.solverstate").state;
  EXPECT_EQ(state.replicas(), static_cast<uint32_t>(count));
  EXPECT_EQ(state.progress(0).layers(0).layer(), "lstm");
  EXPECT_EQ(state.progress(0).layers(0).other_ranks_size(), count - 1);
  EXPECT_NE(state.progress(0).layers(0).other_ranks(0), state.progress(0).layers(0).state());
  SolverOptions options;
  options.snapshot = folder_ / "s_iter_4.solverstate";
  const SolverSpec spec = Spec(kReplicasRecurrent, fields + "max_iter: 5 ", 3);
  testing::internal::CaptureStderr();
  Run(spec, options);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr(Join("The snapshot was made by ", count,
                                      " replicas, but this run has 1: layer 'lstm' resets the "
                                      "state that it keeps from batch to batch")));
}

}  // namespace
}  // namespace trainer
