// Replicas share the batches of tests, and synchronized layers use the batches of all replicas.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rows_run.h"
#include "support/test_device.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::ElementsAreArray;
using testing::FloatNear;
using testing::IsEmpty;
using testing::Pointwise;

struct LearnedSharedTests {
  std::vector<float> weights, losses, tests;  // with all statistics
  std::vector<std::string> states;            // of test nets, in the last snapshot
};

// Nets on 26 rows. Spec replaces "BATCH" by the batch of a replica and "ROWS" by the data.
class SharedTestsTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { TRAINER_CPU_ONLY("the threads sum arrays of the host"); }

  SolverSpec Spec(const std::string& net, const std::string& fields, int batch) const {
    return folder_.Spec(net, "random_seed: 3 " + fields, batch);
  }

  LearnedSharedTests Run(const SolverSpec& spec, const SolverOptions& options) const {
    const auto device = MakeTestDevice(1);
    RecordingObserver observer;
    Solver solver(spec, options, *device, observer);
    EXPECT_EQ(solver.Solve(), SolveResult::kFinished);
    return {WeightsOf(solver, *device), observer.losses, observer.tests, {}};
  }

  // Returns the results of rank 0 and expects all ranks to have the same weights.
  LearnedSharedTests RunAll(const SolverSpec& spec, int count,
                            const std::string& snapshot = "") const {
    std::vector<LearnedSharedTests> learned(static_cast<size_t>(count));
    if (count == 1) {
      SolverOptions options;
      options.snapshot = snapshot;
      learned[0] = Run(spec, options);
    } else {
      RunRanks(count, true, snapshot, [&](const SolverOptions& options, ThreadGroup& group) {
        learned[static_cast<size_t>(group.rank().rank)] = Run(spec, options);
      });
    }
    for (size_t rank = 1; rank < learned.size(); ++rank) {
      EXPECT_THAT(learned[rank].weights, ElementsAreArray(learned[0].weights)) << "bit for bit";
      EXPECT_THAT(learned[rank].tests, IsEmpty());
    }
    learned[0].states =
        TestStates(folder_ / Join("s_iter_", spec.proto.max_iter(), ".solverstate"));
    return learned[0];
  }

  static std::vector<std::string> TestStates(const std::string& path) {
    std::vector<std::string> states;
    const LoadedState loaded = ReadState(path);
    for (const caffe::NetProgress& net : loaded.state.progress()) {
      if (net.net() == "train") continue;
      states.push_back(Join(net.net(), " after ", net.passes()));
      for (const caffe::LayerProgress& layer : net.layers()) states.push_back(layer.state());
    }
    return states;
  }

  RowsFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Of, SharedTestsTest, testing::Values(2, 3, 4, 7),
                         testing::PrintToStringParamName());

const char kSharedTestsRows[] = R"(
layer { name: "rows" type: "HDF5Data" top: "x" top: "label" include { phase: TRAIN }
        hdf5_data_param { source: "ROWS" batch_size: BATCH } }
layer { name: "test" type: "HDF5Data" top: "x" top: "label" include { phase: TEST }
        hdf5_data_param { source: "ROWS" batch_size: 3 shuffle: true } }
)";
const std::string kSharedTestsNet = std::string(kSharedTestsRows) + R"(
layer { name: "noise" type: "DummyData" top: "noise" include { phase: TEST }
        dummy_data_param { shape { dim: 2 } data_filler { type: "gaussian" } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
        inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy"
        include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)";
// With rate 0 nothing is learned, so tests differ only in their batches.
const std::string kStill = "base_lr: 0 test_interval: 2 test_compute_loss: true ";

// The test has five batches, which few numbers of ranks divide.
TEST_P(SharedTestsTest, GiveTheNumbersOfOneRankBitForBit) {
  const std::string fields = kStill + "test_iter: 5 max_iter: 6 ";
  const LearnedSharedTests one = RunAll(Spec(kSharedTestsNet, fields, 4), 1);
  const LearnedSharedTests all = RunAll(Spec(kSharedTestsNet, fields, 4), GetParam());
  EXPECT_EQ(one.tests.size(), 4u * 4);
  EXPECT_THAT(all.tests, ElementsAreArray(one.tests));
  EXPECT_THAT(all.states, ElementsAreArray(one.states));
}

TEST_P(SharedTestsTest, GoOnFromASnapshotOfAnyNumber) {
  const std::string fields = kStill + "test_iter: 5 snapshot: 3 max_iter: ";
  const LearnedSharedTests whole = RunAll(Spec(kSharedTestsNet, fields + "6 ", 4), 1);
  const std::string snapshot = folder_ / "s_iter_3.solverstate";
  for (const auto& [before, after] : {std::pair(GetParam(), 1), {1, GetParam()}, {GetParam(), 3}}) {
    RunAll(Spec(kSharedTestsNet, fields + "3 ", 4), before);
    const LearnedSharedTests rest =
        RunAll(Spec(kSharedTestsNet, fields + "6 ", 4), after, snapshot);
    EXPECT_THAT(rest.tests,
                ElementsAreArray(std::vector(whole.tests.begin() + 8, whole.tests.end())));
    EXPECT_THAT(rest.states, ElementsAreArray(whole.states));
  }
}

// Sequences continue from batch to batch, so ranks cannot share the batches.
TEST_P(SharedTestsTest, NetsThatRememberAreRank0sAlone) {
  const std::string net = std::string(kSharedTestsRows) + R"(
layer { name: "cut" type: "Reshape" bottom: "x" top: "steps" reshape_param { shape { dim: 3 dim: 2 dim: 3 } }
        include { phase: TEST } }
layer { name: "cont" type: "DummyData" top: "cont" include { phase: TEST }
        dummy_data_param { shape { dim: 3 dim: 2 } data_filler { type: "constant" value: 1 } } }
layer { name: "lstm" type: "LSTM" bottom: "steps" bottom: "cont" top: "lstm" include { phase: TEST }
        recurrent_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
        inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)";
  const std::string fields = kStill + "test_iter: 5 max_iter: 4 ";
  const LearnedSharedTests one = RunAll(Spec(net, fields, 4), 1);
  const LearnedSharedTests all = RunAll(Spec(net, fields, 4), GetParam());
  EXPECT_FALSE(one.tests.empty());
  EXPECT_THAT(all.tests, ElementsAreArray(one.tests));
  EXPECT_THAT(all.states, ElementsAreArray(one.states));
}

TEST_P(SharedTestsTest, SeeTheAveragedWeightsOnEachRank) {
  const std::string fields =
      "base_lr: 0.1 ema_decay: 0.9 test_interval: 3 test_iter: 5 max_iter: 9 ";
  const LearnedSharedTests one = RunAll(Spec(kSharedTestsNet, fields, 3 * GetParam()), 1);
  const LearnedSharedTests all = RunAll(Spec(kSharedTestsNet, fields, 3), GetParam());
  EXPECT_THAT(all.tests, Pointwise(FloatNear(1e-5f), one.tests));
}

// This net has two batch norms that are fused with their neighbours, and one that is not.
const std::string kSharedTestsNormNet = std::string(kSharedTestsRows) + R"(
layer { name: "as" type: "Reshape" bottom: "x" top: "map" reshape_param { shape { dim: 0 dim: 3 dim: 2 dim: 1 } } }
layer { name: "conv1" type: "Convolution" bottom: "map" top: "conv1"
        convolution_param { num_output: 5 kernel_size: 1 weight_filler { type: "xavier" } } }
layer { name: "bn1" type: "BatchNorm" bottom: "conv1" top: "bn1" batch_norm_param { synchronized: true } }
layer { name: "scale1" type: "Scale" bottom: "bn1" top: "scale1" scale_param { bias_term: true } }
layer { name: "relu1" type: "ReLU" bottom: "scale1" top: "relu1" }
layer { name: "conv2" type: "Convolution" bottom: "relu1" top: "conv2"
        convolution_param { num_output: 5 kernel_size: 1 weight_filler { type: "xavier" } } }
layer { name: "bn2" type: "BatchNorm" bottom: "conv2" top: "bn2"
        batch_norm_param { synchronized: true scale_bias: true } }
layer { name: "sum" type: "Eltwise" bottom: "bn2" bottom: "relu1" top: "sum" }
layer { name: "relu2" type: "ReLU" bottom: "sum" top: "relu2" }
layer { name: "ip" type: "InnerProduct" bottom: "relu2" top: "ip"
        inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "bn3" type: "BatchNorm" bottom: "ip" top: "bn3" batch_norm_param { synchronized: true } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "bn3" bottom: "label" top: "loss" LOSS }
)";

std::string NormNet(const std::string& loss) {
  std::string net = kSharedTestsNormNet;
  return net.replace(net.find("LOSS"), 4, loss);
}

TEST_P(SharedTestsTest, SynchronizedNetsLearnWhatOneWithAllTheirBatchesLearns) {
  for (const char* fields : {"", "iter_size: 2 ", "clip_gradients: 0.5 "}) {
    const std::string solver =
        Join("base_lr: 0.1 momentum: 0.9 test_interval: 4 test_iter: 5 max_iter: 8 ", fields);
    const std::string net = NormNet("loss_param { ignore_label: 2 }");
    const LearnedSharedTests one = RunAll(Spec(net, solver, 3 * GetParam()), 1);
    const LearnedSharedTests all = RunAll(Spec(net, solver, 3), GetParam());
    EXPECT_THAT(all.losses, Pointwise(FloatNear(2e-5f), one.losses)) << fields;
    EXPECT_THAT(all.weights, Pointwise(FloatNear(2e-4f), one.weights)) << fields;
    EXPECT_THAT(all.tests, Pointwise(FloatNear(2e-4f), one.tests)) << fields;
  }
}

TEST_P(SharedTestsTest, ASummedLossIsThatOfAllBatches) {
  const std::string fields = "base_lr: 0.01 test_interval: 4 test_iter: 5 max_iter: 4 ";
  const std::string net = NormNet("loss_param { normalization: NONE }");
  const LearnedSharedTests one = RunAll(Spec(net, fields, 3 * GetParam()), 1);
  const LearnedSharedTests all = RunAll(Spec(net, fields, 3), GetParam());
  EXPECT_THAT(all.losses, Pointwise(testing::FloatNear(2e-3f), one.losses));
  EXPECT_THAT(all.weights, Pointwise(FloatNear(2e-4f), one.weights));
}

}  // namespace
}  // namespace trainer
