// Each rank makes its own steps, and the ranks average their weights now and then.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "strategy_run.h"
#include "support/error_of.h"

namespace trainer {
namespace {

using testing::ElementsAreArray;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

std::string Local(const std::string& param) {
  return Join("strategy: 'local' strategy_param { ", param, " } ");
}

class LocalTest : public testing::Test, public StrategyRun {};

// The mean of the weights after one step each equals one step with the mean of the gradients.
TEST_F(LocalTest, AveragedAfterEachStepIsSynchronousWithoutMomentum) {
  const std::string fields = "max_iter: 8 test_iter: 2 test_interval: 3 ";
  const auto local = Train(Spec(fields + Local("period: 1")), 4);
  const std::vector<float> saved = Saved(8);
  const auto synchronous = Train(Spec(fields), 4);
  EXPECT_THAT(saved, Pointwise(FloatNear(2e-5f), Saved(8)));
  EXPECT_THAT(local[0].tests, Pointwise(FloatNear(1e-3f), synchronous[0].tests));
}

TEST_F(LocalTest, IsSynchronousBitForBitBeforeItsFirstOwnStep) {
  const std::string fields = "max_iter: 8 momentum: 0.9 ";
  const auto local = Train(Spec(fields + Local("period: 3 synchronous_iter: 8")), 2);
  const auto synchronous = Train(Spec(fields), 2);
  for (size_t rank = 0; rank < 2; ++rank) {
    EXPECT_THAT(local[rank].weights, ElementsAreArray(synchronous[rank].weights));
    EXPECT_THAT(local[rank].losses, ElementsAreArray(synchronous[rank].losses));
  }
}

TEST_F(LocalTest, LeavesRanksWithTheirOwnWeightsBetweenMeans) {
  const auto even = Train(Spec("max_iter: 8 " + Local("period: 4"), kDrawnNet), 2);
  EXPECT_THAT(even[0].weights, ElementsAreArray(even[1].weights));
  const auto odd = Train(Spec("max_iter: 7 " + Local("period: 4"), kDrawnNet), 2);
  EXPECT_NE(odd[0].weights, odd[1].weights);
}

TEST_F(LocalTest, SavesTheMeanOfAllRanks) {
  const auto ranks = Train(Spec("max_iter: 7 " + Local("period: 4"), kDrawnNet), 4);
  const std::vector<float> saved = Saved(7);
  ASSERT_EQ(saved.size(), ranks[0].weights.size());
  std::vector<float> sorted = saved, mean(saved.size());
  for (const RankResult& rank : ranks) {
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += rank.weights[i] / 4;
  }
  std::ranges::sort(sorted);
  std::ranges::sort(mean);
  EXPECT_THAT(sorted, Pointwise(FloatNear(1e-6f), mean));
}

// This holds at any distance from the last mean, and however often a snapshot is taken.
TEST_F(LocalTest, GoesOnFromItsSnapshotBitForBit) {
  const std::string fields = "momentum: 0.9 weight_decay: 0.01 test_iter: 2 test_interval: 3 " +
                             Local("period: 3 synchronous_iter: 2");
  const auto whole = Train(Spec(fields + "max_iter: 10 "), 3);
  const auto saving = Train(Spec(fields + "max_iter: 10 snapshot: 1 "), 3);
  EXPECT_EQ(State(4).strategy(), "local");
  EXPECT_EQ(State(4).strategy_state_size(), 3);
  EXPECT_EQ(State(2).strategy_state_size(), 0) << "all are alike";
  for (size_t rank = 0; rank < 3; ++rank) {
    EXPECT_THAT(saving[rank].weights, ElementsAreArray(whole[rank].weights));
  }
  for (int at = 1; at < 10; ++at) {
    const auto rest =
        Train(Spec(fields + "max_iter: 10 "), 3, *this / Join("s_iter_", at, ".solverstate"));
    for (size_t rank = 0; rank < 3; ++rank) {
      EXPECT_THAT(rest[rank].weights, ElementsAreArray(whole[rank].weights)) << at;
    }
  }
}

TEST_F(LocalTest, InAnotherNumberOfRanksGoesOnFromTheMean) {
  Train(Spec("max_iter: 5 " + Local("period: 4"), kDrawnNet), 4);
  testing::internal::CaptureStderr();
  const auto rest = Train(Spec("max_iter: 8 " + Local("period: 4"), kDrawnNet), 2,
                          *this / "s_iter_5.solverstate");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("made with 4 ranks and strategy 'local', but this run has 2 and strategy "
                        "'local': all ranks start from the common weights of the"));
  EXPECT_THAT(rest[0].weights, ElementsAreArray(rest[1].weights));
}

// The size lets a run report at its start that the disk has too little room.
TEST_F(LocalTest, ExpectsASnapshotWithTheStatesOfAllRanks) {
  for (const char* strategy : {"synchronous", "local", "easgd", "gossip", "parameter_server"}) {
    const auto ranks =
        Train(Spec(Join("max_iter: 5 momentum: 0.9 strategy_param { period: 4 } strategy: '",
                        strategy, "'")),
              3);
    const uint64_t written = std::filesystem::file_size(*this / "s_iter_5.caffemodel") +
                             std::filesystem::file_size(*this / "s_iter_5.solverstate");
    constexpr uint64_t kNames = 1500;  // layer names and the like
    EXPECT_LE(ranks[0].snapshot_bytes, written) << strategy;
    EXPECT_GE(ranks[0].snapshot_bytes + kNames, written) << strategy;
  }
}

TEST_F(LocalTest, RefusesAStateOfAnotherSize) {
  Train(Spec("max_iter: 5 " + Local("period: 4")), 2);
  caffe::SolverState state = State(5);
  state.set_strategy_state(0, state.strategy_state(0).substr(4));
  state.set_strategy_state(1, state.strategy_state(1).substr(4));
  WriteState(*this / "s_iter_5.solverstate", state);
  RunRanks(
      2, true, *this / "s_iter_5.solverstate", [&](const SolverOptions& options, ThreadGroup&) {
        const auto device = MakeTestDevice(1);
        RecordingObserver observer;
        const SolverSpec spec = LoadSolver(*this / "solver.prototxt");
        const auto [code, message] = ErrorOf([&] { Solver(spec, options, *device, observer); });
        EXPECT_EQ(code, ErrorCode::kBadSnapshot);
        EXPECT_THAT(message, HasSubstr("the state of a rank has"));
      });
}

TEST(StrategyFieldsTest, AreRefusedWithTheirLine) {
  const StrategyRun run;
  const auto refusal = [&](const std::string& fields, const std::string& net = kStrategyNet) {
    const SolverSpec spec = run.Spec("max_iter: 3\n" + fields, net);
    const auto [code, message] = ErrorOf([&] { MakeStrategy(spec, 1); });
    EXPECT_EQ(code, ErrorCode::kConfig) << fields;
    EXPECT_THAT(message, HasSubstr("solver.prototxt:4:")) << fields;
    return message;
  };
  EXPECT_THAT(refusal("strategy: 'esgd'"), HasSubstr("unknown strategy 'esgd'. Did you mean "));
  EXPECT_THAT(refusal("strategy_param { period: 0 } strategy: 'local'"),
              HasSubstr("strategy_param.period is 0; it must be at least 1"));
  EXPECT_THAT(refusal("strategy_param { synchronous_iter: -1 } strategy: 'local'"),
              HasSubstr("strategy_param.synchronous_iter is -1; it must be at least 0"));
  EXPECT_THAT(refusal("strategy_param { period: 0 } strategy: 'easgd'"),
              HasSubstr("strategy_param.period is 0; it must be at least 1"));
  EXPECT_THAT(refusal("strategy_param { elasticity: 1.5 } strategy: 'easgd'"),
              HasSubstr("strategy_param.elasticity is 1.5; it must be from 0 to 1"));
  EXPECT_THAT(refusal("strategy_param { probability: 0 } strategy: 'gossip'"),
              HasSubstr("strategy_param.probability is 0; it must be above 0"));
  EXPECT_THAT(refusal("strategy_param { servers: 0 } strategy: 'parameter_server'"),
              HasSubstr("strategy_param.servers is 0; it must be at least 1"));
  EXPECT_THAT(refusal("strategy_param { staleness: -2 } strategy: 'parameter_server'"),
              HasSubstr("strategy_param.staleness is -2; it must be at least -1"));
  EXPECT_THAT(refusal("virtual_ranks: 2 strategy: 'local'"), HasSubstr("virtual_ranks is 2, but"));
  EXPECT_THAT(refusal("ema_decay: 0.9 strategy: 'local'"), HasSubstr("ema_decay is 0.9, but"));
  EXPECT_THAT(refusal("lr_policy: 'plateau' gamma: 0.1 plateau_winsize: 3 strategy: 'local'"),
              HasSubstr("lr_policy 'plateau' follows the loss of all ranks, but with strategy "
                        "'local' each rank knows only its own; use another policy"));
}

TEST(StrategyFieldsTest, RefuseSynchronizedBatchNorm) {
  std::string net = kStrategyNet;
  const std::string plain = "type: \"BatchNorm\"";
  net.replace(net.find(plain), plain.size(), plain + " batch_norm_param { synchronized: true }");
  const SolverSpec spec = StrategyRun().Spec("max_iter: 3 strategy: 'local'", net);
  const auto [code, message] = ErrorOf([&] { MakeStrategy(spec, 2); });
  EXPECT_EQ(code, ErrorCode::kConfig);
  EXPECT_THAT(message, HasSubstr("synchronized is true, but with strategy 'local'"));
}

}  // namespace
}  // namespace trainer
