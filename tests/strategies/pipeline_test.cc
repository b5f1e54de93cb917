// Stages on ranks give the losses, weights and files of one rank with a pass per micro-batch.

#include "trainer/strategies/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strategy_run.h"
#include "support/error_of.h"

namespace trainer {
namespace {

using testing::ElementsAreArray;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

// Returns a net with a skip over two layers, a second loss in the middle, dropout and running
// averages. Its batch size is BATCH, to be replaced. The stages of the layers are given for four
// ranks.
std::string Net(int stages = 4) {
  const auto stage = [&](int of_four) { return Join(" stage: ", of_four * stages / 4, " "); };
  return Join(R"(
layer { name: "rows" type: "HDF5Data" top: "x" top: "label" include { phase: TRAIN }
        hdf5_data_param { source: "ROWS" batch_size: BATCH shuffle: true } }
layer { name: "test" type: "HDF5Data" top: "x" top: "label" include { phase: TEST }
        hdf5_data_param { source: "ROWS" batch_size: 13 } }
layer { name: "ip1" type: "InnerProduct" bottom: "x" top: "ip1"
        inner_product_param { num_output: 9 weight_filler { type: "xavier" } } }
layer { name: "bn" type: "BatchNorm" bottom: "ip1" top: "ip1" }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2")",
              stage(1), R"(inner_product_param { num_output: 9 weight_filler { type: "xavier" } } }
layer { name: "relu2" type: "ReLU" bottom: "ip2" top: "ip2" }
layer { name: "aux" type: "InnerProduct" bottom: "ip2" top: "aux"
        inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "aux_loss" type: "SoftmaxWithLoss" bottom: "aux" bottom: "label" top: "aux_loss"
        loss_weight: 0.3 }
layer { name: "drop" type: "Dropout" bottom: "ip2" top: "ip2")",
              stage(2), R"(}
layer { name: "sum" type: "Eltwise" bottom: "ip2" bottom: "ip1" top: "sum" }
layer { name: "ip3" type: "InnerProduct" bottom: "sum" top: "ip3")",
              stage(3), R"(inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip3" bottom: "label" top: "loss" }
layer { name: "accuracy" type: "Accuracy" bottom: "ip3" bottom: "label" top: "accuracy"
        include { phase: TEST } }
)");
}

std::string Piped(const std::string& param = "micro_batches: 4") {
  return Join("strategy: 'pipeline' strategy_param { ", param, " } ");
}

class PipelineTest : public testing::Test, public StrategyRun {
 public:
  SolverSpec Batches(int size, const std::string& fields, const std::string& net) const {
    std::string text = net;
    text.replace(text.find("BATCH"), 5, Join(size));
    return Spec(fields, text);
  }
  // Staged nets take batches of 12 in 4 micro-batches; the whole net takes batches of 3, with a
  // pass for each.
  SolverSpec WholeNet(const std::string& fields) const {
    return Batches(3, "iter_size: 4 " + fields, Net());
  }
  SolverSpec Staged(const std::string& fields, int stages = 4) const {
    return Batches(12, fields + Piped(), Net(stages));
  }
};

const char kFields[] =
    "momentum: 0.9 weight_decay: 0.01 test_iter: 3 test_interval: 2 test_compute_loss: true ";

void ExpectEqualRuns(const RankResult& staged, const RankResult& whole) {
  EXPECT_THAT(staged.losses, Pointwise(FloatNear(1e-5f), whole.losses));
  EXPECT_THAT(staged.tests, Pointwise(FloatNear(1e-5f), whole.tests));
  EXPECT_EQ(staged.iters, whole.iters);
}

TEST_F(PipelineTest, HasTheLossesTestsAndWeightsOfOneRank) {
  const auto whole = Train(WholeNet(Join(kFields, "max_iter: 7 ")), 1);
  const std::vector<float> weights = Saved(7);
  for (const int ranks : {2, 4}) {
    const auto staged = Train(Staged(Join(kFields, "max_iter: 7 "), ranks), ranks);
    ExpectEqualRuns(staged[0], whole[0]);
    EXPECT_THAT(Saved(7), Pointwise(FloatNear(1e-5f), weights)) << ranks;
    for (const RankResult& rank : staged) {
      EXPECT_THAT(rank.losses, ElementsAreArray(staged[0].losses)) << "of all stages";
      EXPECT_LT(rank.weights.size(), whole[0].weights.size());
    }
  }
}

// Machines hold up to three stages, up to two, or one.
TEST_F(PipelineTest, OfSeveralMachinesIsOneRankAsWell) {
  const std::string fields = Join(kFields, "max_iter: 7 snapshot: 3 ");
  const auto whole = Train(WholeNet(fields), 1);
  const std::vector<float> weights = Saved(7);
  for (const int ranks_of_one : {3, 2, 1}) {
    per_machine = ranks_of_one;
    const auto staged = Train(Staged(fields), 4);
    ExpectEqualRuns(staged[0], whole[0]);
    EXPECT_THAT(Saved(7), Pointwise(FloatNear(1e-5f), weights)) << ranks_of_one;
    const std::vector<float> first = Saved(7);
    Train(Staged(fields), 4, *this / "s_iter_3.solverstate");
    EXPECT_THAT(Saved(7), ElementsAreArray(first)) << "resumed";
  }
}

TEST_F(PipelineTest, ClipsByTheNormOfAllStages) {
  const std::string fields = "max_iter: 5 clip_gradients: 0.05 ";
  const auto whole = Train(WholeNet(fields), 1);
  const auto staged = Train(Staged(fields), 4);
  EXPECT_THAT(staged[0].losses, Pointwise(FloatNear(1e-5f), whole[0].losses));
  ASSERT_EQ(staged[0].notes.size(), whole[0].notes.size() + 1) << "what was sent, in the end";
  EXPECT_THAT(staged[3].notes, testing::Contains(HasSubstr("Gradient clipping")));
}

TEST_F(PipelineTest, FollowsTheLossOfAllStagesAndClipsEachGradient) {
  const std::string fields =
      "max_iter: 6 lr_policy: 'plateau' gamma: 0.5 plateau_winsize: 1 plateau_winsize: 1 "
      "clip_value: 0.01 weight_decay: 0.01 decay_on_bias_and_norm: false ";
  const auto whole = Train(WholeNet(fields), 1);
  const auto staged = Train(Staged(fields), 4);
  EXPECT_THAT(staged[0].losses, Pointwise(FloatNear(1e-5f), whole[0].losses));
}

TEST_F(PipelineTest, WithPassesOfItsOwnIsOneRankWithAllOfThem) {
  const auto whole = Train(Batches(3, "iter_size: 8 max_iter: 4 ", Net()), 1);
  const auto staged = Train(Batches(12, "iter_size: 2 max_iter: 4 " + Piped(), Net()), 4);
  EXPECT_THAT(staged[0].losses, Pointwise(FloatNear(1e-5f), whole[0].losses));
}

// Covers fewer micro-batches than stages, and a single one.
TEST_F(PipelineTest, MayHaveAnyNumberOfMicroBatches) {
  for (const int parts : {1, 2, 12}) {
    const auto whole =
        Train(Batches(12 / parts, Join("iter_size: ", parts, " max_iter: 3 "), Net()), 1);
    const auto staged =
        Train(Batches(12, "max_iter: 3 " + Piped(Join("micro_batches: ", parts)), Net()), 4);
    EXPECT_THAT(staged[0].losses, Pointwise(FloatNear(1e-5f), whole[0].losses)) << parts;
  }
}

TEST_F(PipelineTest, SavesFilesThatAnyNumberOfStagesGoesOnFrom) {
  const std::string fields = Join(kFields, "type: 'Adam' max_iter: 8 ema_decay: 0.5 ");
  const auto whole = Train(WholeNet(fields), 1);
  const std::vector<float> weights = Saved(8);
  Train(Staged(fields + "snapshot: 3 "), 4);
  const std::string state = *this / "s_iter_3.solverstate";
  EXPECT_EQ(State(3).history_size(), State(8).history_size());
  EXPECT_FALSE(State(3).has_replicas()) << "no replicas made it";
  for (const int ranks : {4, 2}) {
    Train(Staged(fields, ranks), ranks, state);
    EXPECT_THAT(Saved(8), Pointwise(FloatNear(1e-5f), weights)) << ranks;
  }
  Train(WholeNet(fields), 1, state);
  EXPECT_THAT(Saved(8), Pointwise(FloatNear(1e-5f), weights));
  Train(WholeNet(fields + "snapshot: 5 "), 1);
  Train(Staged(fields), 4, *this / "s_iter_5.solverstate");
  EXPECT_THAT(Saved(8), Pointwise(FloatNear(1e-5f), weights)) << "from one rank's";
}

TEST_F(PipelineTest, GoesOnBitForBit) {
  const std::string fields = Join(kFields, "max_iter: 6 ");
  Train(Staged(fields + "snapshot: 4 "), 4);
  const std::vector<float> weights = Saved(6);
  Train(Staged(fields), 4, *this / "s_iter_4.solverstate");
  EXPECT_THAT(Saved(6), ElementsAreArray(weights));
}

TEST_F(PipelineTest, ChoosesStagesByCost) {
  const auto whole = Train(WholeNet("max_iter: 3 "), 1);
  for (const int ranks : {2, 3}) {
    const auto staged =
        Train(Batches(12, "max_iter: 3 " + Piped("micro_batches: 4 stages: 'auto'"), Net()), ranks);
    EXPECT_THAT(staged[0].losses, Pointwise(FloatNear(1e-5f), whole[0].losses)) << ranks;
  }
}

class PipelineRefusalTest : public PipelineTest {
 public:
  // Returns the message that each of `ranks` ranks gets.
  std::string Refusal(const SolverSpec& spec, ErrorCode code = ErrorCode::kConfig, int ranks = 2) {
    std::vector<std::string> messages(static_cast<size_t>(ranks));
    const auto device = MakeTestDevice(1);
    for (int rank = 0; rank < ranks; ++rank) {
      const auto [got, message] = ErrorOf([&] {
        const auto strategy = MakeStrategy(spec, ranks);
        strategy->pipeline()->Partition(spec, *device, {rank, ranks});
      });
      EXPECT_EQ(got, code) << message;
      messages[static_cast<size_t>(rank)] = message;
    }
    EXPECT_EQ(messages.front(), messages.back());
    return messages.front();
  }
  static std::string With(std::string net, const std::string& from, const std::string& to) {
    return net.replace(net.find(from), from.size(), to);
  }
};

TEST_F(PipelineRefusalTest, OfStagesNamesTheLayer) {
  const auto refusal = [&](const std::string& from, const std::string& to, int ranks = 4) {
    return Refusal(Batches(12, "max_iter: 3 " + Piped(), With(Net(), from, to)), ErrorCode::kConfig,
                   ranks);
  };
  EXPECT_THAT(refusal("stage: 3", "stage: 1"),
              HasSubstr("layer 'ip3' (InnerProduct): this layer is in stage 1, but the layer "
                        "before it is in stage 2: stages cannot decrease"));
  EXPECT_THAT(refusal("stage: 3", "stage: 2"), HasSubstr("stage 3 has no layer, but each of the 4 "
                                                         "ranks"));
  EXPECT_THAT(refusal("stage: 3", "stage: 4"),
              HasSubstr("stage is 4, but 4 ranks have the stages 0 to"));
  EXPECT_THAT(refusal("stage: 1", "stage: 1", 2),
              HasSubstr("stage is 2, but 2 ranks have the stages 0 to 1; start more"));
  EXPECT_THAT(refusal("type: \"HDF5Data\"", "type: \"HDF5Data\" stage: 1"),
              HasSubstr("this is a data layer, and only stage 0 reads data"));
}

TEST_F(PipelineRefusalTest, OfANetWithoutStagesSaysHowToGetThem) {
  std::string net = Net();
  for (size_t at = net.find("stage:"); at != net.npos; at = net.find("stage:")) {
    net.erase(at, std::string("stage: 1").size());
  }
  EXPECT_THAT(Refusal(Batches(12, "max_iter: 3 " + Piped(), net)),
              HasSubstr("no layer has a `stage`, but each of the 2 ranks computes one stage: "
                        "write `stage: 1` into the first layer of the second stage, and so on, or "
                        "let --pipeline_stages=auto choose the stages"));
  EXPECT_THAT(
      Refusal(Batches(12, "max_iter: 3 " + Piped("stages: 'auto'"), net), ErrorCode::kConfig, 40),
      HasSubstr("the net cannot be divided into 40 stages"));
}

TEST_F(PipelineRefusalTest, OfWeightsInTwoStages) {
  const std::string shared = "type: \"InnerProduct\" param { name: \"w\" }";
  std::string net = With(Net(), "type: \"InnerProduct\"", shared);
  net = With(net, "num_output: 9", "num_output: 6");
  const size_t second = net.find("name: \"ip2\"");
  net = net.substr(0, second) + With(net.substr(second), "type: \"InnerProduct\"", shared);
  const size_t sized = net.find("num_output: 9");
  net.replace(sized, 13, "num_output: 6");
  EXPECT_THAT(Refusal(Batches(12, "max_iter: 3 " + Piped(), net), ErrorCode::kConfig, 4),
              HasSubstr("is in stage 1, but it shares the weight 'w' with layer 'ip1' in stage"));
}

TEST_F(PipelineRefusalTest, OfFieldsThatDoNotFit) {
  const auto refusal = [&](const std::string& fields) {
    return Refusal(Batches(12, "max_iter: 3 " + fields, Net()), ErrorCode::kConfig, 4);
  };
  EXPECT_THAT(refusal(Piped("micro_batches: 5")),
              HasSubstr("strategy_param.micro_batches is 5, which does not divide the batch of 12 "
                        "records"));
  EXPECT_THAT(refusal(Piped("micro_batches: -1")),
              HasSubstr("strategy_param.micro_batches is -1; it must be at least 0"));
  EXPECT_THAT(refusal(Piped("stages: 'even'")),
              HasSubstr("strategy_param.stages is 'even'; it must be \"auto\""));
  EXPECT_THAT(refusal("virtual_ranks: 2 " + Piped()), HasSubstr("virtual_ranks is 2, but"));
}

}  // namespace
}  // namespace trainer
