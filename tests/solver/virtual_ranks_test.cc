// Virtual ranks: any number of ranks that divides virtual_ranks learns the same bits.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "rows_run.h"
#include "support/error_of.h"
#include "support/test_device.h"
#include "trainer/base/text/text.h"
#include "trainer/optim/objective.h"

namespace trainer {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;

// The results of a run; all but the weights are from rank 0.
struct Left {
  std::vector<std::vector<float>> weights;  // by rank
  std::vector<float> losses, outputs, tests;
  std::string model, state;  // the files of the last snapshot
};

constexpr int kParts = 4;

class VirtualRanksTest : public testing::Test {
 protected:
  void SetUp() override { TRAINER_CPU_ONLY("the threads sum arrays of the host"); }

  SolverSpec Spec(const std::string& net, const std::string& fields, int virtual_ranks) const {
    return folder_.Spec(net, Join("base_lr: 0.1 momentum: 0.9 weight_decay: 0.01 random_seed: 3 "
                                  "virtual_ranks: ",
                                  virtual_ranks, " ", fields));
  }

  static void Run(const SolverSpec& spec, const SolverOptions& options, int rank, Left& left) {
    const auto device = MakeTestDevice(1);
    RecordingObserver observer;
    Solver solver(spec, options, *device, observer);
    EXPECT_EQ(solver.Solve(), SolveResult::kFinished);
    left.weights[static_cast<size_t>(rank)] = WeightsOf(solver, *device);
    if (rank != 0) return;
    left.losses = observer.losses;
    left.outputs = observer.outputs;
    left.tests = observer.tests;
    const std::string name =
        Join(spec.proto.snapshot_prefix(), "_iter_", spec.proto.max_iter(), ".");
    left.model = ReadText(name + "caffemodel");
    left.state = ReadText(name + "solverstate");
  }

  static Left RunAll(const SolverSpec& spec, int ranks, const std::string& snapshot = "") {
    Left left;
    left.weights.resize(static_cast<size_t>(ranks));
    SolverOptions options;
    options.snapshot = snapshot;
    if (ranks == 1) {
      Run(spec, options, 0, left);
      return left;
    }
    RunRanks(ranks, ranks == 2, snapshot, [&](const SolverOptions& own, ThreadGroup& group) {
      Run(spec, own, group.rank().rank, left);
    });
    return left;
  }

  static void ExpectEqual(const Left& left, const Left& other, const std::string& what) {
    for (const std::vector<float>& weights : left.weights) {
      EXPECT_THAT(weights, ElementsAreArray(other.weights[0])) << what;
    }
    EXPECT_THAT(left.losses, ElementsAreArray(other.losses)) << what;
    EXPECT_THAT(left.outputs, ElementsAreArray(other.outputs)) << what;
    EXPECT_THAT(left.tests, ElementsAreArray(other.tests)) << what;
    EXPECT_TRUE(left.model == other.model) << what;
  }

  // Expects 1, 2 and 4 ranks to learn the same as 4 ranks without virtual ranks.
  void ExpectAlike(const std::string& net, const std::string& fields) const {
    const Left plain = RunAll(Spec(net, fields, 1), kParts);
    ASSERT_FALSE(plain.model.empty());
    const Left one = RunAll(Spec(net, fields, kParts), 1);
    ExpectEqual(one, plain, fields + "one rank");
    for (const int ranks : {2, 4}) {
      const Left some = RunAll(Spec(net, fields, kParts), ranks);
      ExpectEqual(some, one, Join(fields, ranks, " ranks"));
      EXPECT_TRUE(some.state == one.state) << fields << ranks << " ranks";
    }
  }

  RowsFolder folder_;
};

const char kVirtualRanksRows[] = R"(
layer { name: "rows" type: "HDF5Data" top: "x" top: "label" include { phase: TRAIN }
        hdf5_data_param { source: "ROWS" batch_size: 3 shuffle: true } }
layer { name: "test" type: "HDF5Data" top: "x" top: "label" include { phase: TEST }
        hdf5_data_param { source: "ROWS" batch_size: 13 } }
layer { name: "ip1" type: "InnerProduct" bottom: "x" top: "ip1"
        inner_product_param { num_output: 9 weight_filler { type: "xavier" } } }
layer { name: "bn" type: "BatchNorm" bottom: "ip1" top: "ip1" }
layer { name: "scale" type: "Scale" bottom: "ip1" top: "ip1" scale_param { bias_term: true } }
layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
layer { name: "drop" type: "Dropout" bottom: "ip1" top: "ip1" }
layer { name: "path" type: "DropPath" bottom: "ip1" top: "ip1" drop_path_param { drop_ratio: 0.3 } }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
        inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
)";

const char kVirtualRanksRecurrent[] = R"(
layer { name: "noise" type: "DummyData" top: "x" top: "cont" top: "y"
        dummy_data_param { shape { dim: 2 dim: 3 dim: 4 } shape { dim: 2 dim: 3 }
          shape { dim: 2 dim: 3 dim: 3 } data_filler { type: "gaussian" }
          data_filler { type: "constant" value: 1 } data_filler { type: "gaussian" } } }
layer { name: "lstm" type: "LSTM" bottom: "x" bottom: "cont" top: "lstm"
        recurrent_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "bn" type: "BatchNorm" bottom: "lstm" top: "bn" batch_norm_param { scale_bias: true } }
layer { name: "drop" type: "Dropout" bottom: "bn" top: "drop" }
layer { name: "ip" type: "InnerProduct" bottom: "drop" top: "ip"
        inner_product_param { num_output: 3 axis: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "y" top: "loss" }
)";

constexpr char kVirtualRanksTests[] = "max_iter: 7 test_iter: 2 test_interval: 3 ";

TEST_F(VirtualRanksTest, LearnTheSameBitsOnAnyNumberOfRanks) {
  ExpectAlike(kVirtualRanksRows, kVirtualRanksTests);
  ExpectAlike(kVirtualRanksRecurrent, "max_iter: 6 ");
}

TEST_F(VirtualRanksTest, LearnTheSameBitsWithSeveralPassesAndAverages) {
  for (const char* fields : {"iter_size: 2 average_loss: 3 ", "iter_size: 3 ema_decay: 0.9 "}) {
    ExpectAlike(kVirtualRanksRows, Join(kVirtualRanksTests, fields));
    ExpectAlike(kVirtualRanksRecurrent, Join("max_iter: 4 ", fields));
  }
}

TEST_F(VirtualRanksTest, LearnTheSameBitsWithRulesThatNeedNorms) {
  ExpectAlike(kVirtualRanksRows, Join(kVirtualRanksTests, "clip_gradients: 0.3 type: 'Adam' "));
  ExpectAlike(kVirtualRanksRows, Join(kVirtualRanksTests,
                                      "clip_value: 0.01 lr_policy: 'plateau' gamma: 0.5 "
                                      "plateau_winsize: 1 plateau_winsize: 1 "));
  ExpectAlike(kVirtualRanksRows,
              Join(kVirtualRanksTests, "type: 'LARS' trust_coefficient: 0.1 iter_size: 2 "));
  ExpectAlike(kVirtualRanksRows, Join(kVirtualRanksTests,
                                      "clip_gradients: 0.5 snapshot_diff: true larc: true "
                                      "larc_eta: 0.1 "));
}

// Any number of ranks resumes from the snapshot of any other number as if nothing had happened.
TEST_F(VirtualRanksTest, GoOnFromASnapshotOfAnyNumberOfRanksBitForBit) {
  for (const char* net : {kVirtualRanksRows, kVirtualRanksRecurrent}) {
    const Left whole = RunAll(Spec(net, "max_iter: 9 ", kParts), 4);
    for (const int before : {1, 2, 4}) {
      RunAll(Spec(net, "max_iter: 4 ", kParts), before);
      for (const int after : {1, 2, 4}) {
        const Left rest =
            RunAll(Spec(net, "max_iter: 9 ", kParts), after, folder_ / "s_iter_4.solverstate");
        const std::string what = Join(before, " ranks, then ", after);
        EXPECT_TRUE(rest.model == whole.model) << what;
        for (const auto& weights : rest.weights) {
          EXPECT_THAT(weights, ElementsAreArray(whole.weights[0])) << what;
        }
      }
    }
  }
}

TEST_F(VirtualRanksTest, GoOnFromARunOfAsManyRanksWithoutVirtualOnes) {
  const Left whole = RunAll(Spec(kVirtualRanksRecurrent, "max_iter: 9 ", 1), 4);
  RunAll(Spec(kVirtualRanksRecurrent, "max_iter: 4 ", 1), 4);
  const Left rest = RunAll(Spec(kVirtualRanksRecurrent, "max_iter: 9 ", kParts), 1,
                           folder_ / "s_iter_4.solverstate");
  EXPECT_TRUE(rest.model == whole.model);
}

TEST_F(VirtualRanksTest, WarnOfASnapshotWithOtherPartsOrThreads) {
  RunAll(Spec(kVirtualRanksRecurrent, "max_iter: 4 ", kParts), 1);
  const std::string path = folder_ / "s_iter_4.solverstate";
  EXPECT_EQ(ReadState(path).state.virtual_ranks(), 4u);
  EXPECT_EQ(ReadState(path).state.threads(), 1u);
  EXPECT_EQ(ReadState(path).state.progress(0).layers(0).other_ranks_size(), 3);
  const SolverSpec two = Spec(kVirtualRanksRecurrent, "max_iter: 5 ", 2);
  testing::internal::CaptureStderr();
  RunAll(two, 1, path);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("In the run of the snapshot, each batch has 4 parts, but in this run 2: "
                        "records, random numbers and sums are divided differently, so the weights "
                        "will differ from that run; virtual_ranks: 4 gives the same weights"));
  const SolverSpec same = Spec(kVirtualRanksRecurrent, "max_iter: 5 ", kParts);
  const auto device = MakeTestDevice(2);
  RecordingObserver observer;
  SolverOptions options;
  options.snapshot = path;
  testing::internal::CaptureStderr();
  const Solver solver(same, options, *device, observer);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("The snapshot was made with 1 thread per rank, but this run has 2"));
}

TEST_F(VirtualRanksTest, OfOneAreARunAlone) {
  const Left plain = RunAll(Spec(kVirtualRanksRows, kVirtualRanksTests, 1), 1);
  const caffe::SolverState state = ReadState(folder_ / "s_iter_7.solverstate").state;
  EXPECT_FALSE(state.has_virtual_ranks());
  EXPECT_FALSE(state.has_replicas());
}

TEST_F(VirtualRanksTest, KeepRunningAveragesEqualOnAllRanksWithoutVirtualOnesToo) {
  const Left plain = RunAll(Spec(kVirtualRanksRows, kVirtualRanksTests, 1), 3);
  for (const auto& weights : plain.weights) EXPECT_EQ(weights, plain.weights[0]);
}

TEST_F(VirtualRanksTest, RefuseWhatTheyCannotSplit) {
  const auto refusal = [&](const SolverSpec& spec, int ranks) {
    Meeting meeting(ranks);
    ThreadGroup group(meeting, 0, true);
    SolverOptions options;
    if (ranks > 1) options.group = &group;
    const auto device = MakeTestDevice(1);
    RecordingObserver observer;
    return ErrorOf([&] { Solver(spec, options, *device, observer); });
  };
  const auto [code, text] = refusal(Spec(kVirtualRanksRows, "max_iter: 1 ", 4), 3);
  EXPECT_EQ(code, ErrorCode::kUsage);
  EXPECT_THAT(text, HasSubstr("virtual_ranks is 4, and 3 ranks cannot share these parts evenly; "
                              "start 4 ranks, or that number divided"));
  const auto more = refusal(Spec(kVirtualRanksRows, "max_iter: 1 ", 4), 8);
  EXPECT_EQ(more.first, ErrorCode::kUsage);
  EXPECT_THAT(more.second, HasSubstr("and 8 ranks cannot share these parts evenly: each needs a "
                                     "part"));
  std::string net = kVirtualRanksRows;
  net.replace(net.find("type: \"BatchNorm\""), 17,
              "type: \"BatchNorm\" batch_norm_param { synchronized: true }");
  const auto moments = refusal(Spec(net, "max_iter: 1 ", 4), 1);
  EXPECT_EQ(moments.first, ErrorCode::kConfig);
  EXPECT_THAT(moments.second, HasSubstr("layer 'bn' (BatchNorm): synchronized is true and the "
                                        "solver's virtual_ranks 4"));
}

TEST_F(VirtualRanksTest, AreAPowerOfTwo) {
  for (const auto& [parts, text] :
       {std::pair(0, "virtual_ranks is 0; it must be at least 1"),
        {-4, "virtual_ranks is -4; it must be at least 1"},
        {6,
         "virtual_ranks is 6; it must be a power of two, because the parts of a batch are added "
         "in pairs: give 4 or 8"},
        {1 << 20, "virtual_ranks is 1048576; it must be at most 65536"}}) {
    const auto [code, said] = ErrorOf([&] { Spec(kVirtualRanksRows, "max_iter: 1 ", parts); });
    EXPECT_EQ(code, ErrorCode::kConfig);
    EXPECT_THAT(said, HasSubstr(text));
  }
}

TEST(ExtraGradientsTest, AreOneForEachLevelOfTheTreeOrEachPartWithSeveralPasses) {
  EXPECT_EQ(ExtraGradients(1, 1), 0);
  EXPECT_EQ(ExtraGradients(1, 3), 0);
  EXPECT_EQ(ExtraGradients(2, 1), 1);
  EXPECT_EQ(ExtraGradients(8, 1), 3);
  EXPECT_EQ(ExtraGradients(8, 2), 8);
}

}  // namespace
}  // namespace trainer
