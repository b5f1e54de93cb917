// Weights and rule states that all ranks share give the numbers of synchronous replicas, bit for
// bit.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strategy_run.h"
#include "support/error_of.h"

namespace trainer {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;

const std::string kCentral = "strategy: 'central_storage' ";

class CentralStorageTest : public testing::Test, public StrategyRun {};

TEST_F(CentralStorageTest, IsSynchronousBitForBit) {
  TRAINER_CPU_ONLY("weights lie in memory of the host");
  for (const char* rule :
       {"type: 'SGD' momentum: 0.9 weight_decay: 0.01 ", "type: 'Adam' ", "type: 'LARS' ",
        "virtual_ranks: 4 ", "clip_gradients: 0.1 iter_size: 2 ", "larc: true clip_value: 0.01 ",
        "lr_policy: 'plateau' gamma: 0.5 plateau_winsize: 1 plateau_winsize: 1 "}) {
    const std::string fields = Join("max_iter: 6 test_iter: 2 test_interval: 2 ", rule);
    const auto synchronous = Train(Spec(fields), 4);
    const std::vector<float> saved = Saved(6);
    const auto central = Train(Spec(fields + kCentral), 4);
    EXPECT_THAT(Saved(6), ElementsAreArray(saved)) << rule;
    for (size_t rank = 0; rank < 4; ++rank) {
      EXPECT_THAT(central[rank].losses, ElementsAreArray(synchronous[rank].losses)) << rule;
    }
    EXPECT_THAT(central[0].tests, ElementsAreArray(synchronous[0].tests)) << rule;
  }
}

TEST_F(CentralStorageTest, GoesOnFromItsSnapshotAndFromASynchronousOne) {
  TRAINER_CPU_ONLY("weights lie in memory of the host");
  const std::string fields = "momentum: 0.9 ";
  Train(Spec(fields + "max_iter: 8 snapshot: 3 "), 2);
  const std::vector<float> saved = Saved(8);
  Train(Spec(fields + "max_iter: 8 " + kCentral), 2, *this / "s_iter_3.solverstate");
  EXPECT_THAT(Saved(8), ElementsAreArray(saved));
  Train(Spec(fields + "max_iter: 8 snapshot: 5 " + kCentral), 2);
  Train(Spec(fields + "max_iter: 8 " + kCentral), 2, *this / "s_iter_5.solverstate");
  EXPECT_THAT(Saved(8), ElementsAreArray(saved));
}

TEST_F(CentralStorageTest, HoldsWeightsAndStatesOnce) {
  TRAINER_CPU_ONLY("weights lie in memory of the host");
  const auto ranks = Train(Spec("max_iter: 2 momentum: 0.9 " + kCentral), 4);
  EXPECT_THAT(ranks[0].notes.back(), HasSubstr("Strategy central_storage: "));
  EXPECT_THAT(ranks[0].notes.back(),
              HasSubstr("of weights and rule state, stored once for 4 ranks"));
  EXPECT_EQ(blocks->count(), 2u) << "of weights and of momentum";
}

TEST(CentralStorageRefusalTest, NamesWhatItLacks) {
  const StrategyRun run;
  const auto device = MakeTestDevice(1);
  const SolverSpec spec = run.Spec("max_iter: 3 " + kCentral);
  const auto strategy = MakeStrategy(spec, 2);
  const auto [code, message] = ErrorOf([&] { strategy->WeightMemory(*device, nullptr); });
  EXPECT_EQ(code, ErrorCode::kUnavailable);
  EXPECT_THAT(message, HasSubstr("but these ranks share none; use strategy 'synchronous'"));
  const SolverSpec averaged = run.Spec("max_iter: 3 ema_decay: 0.9 " + kCentral);
  const auto [config, text] = ErrorOf([&] { MakeStrategy(averaged, 2); });
  EXPECT_EQ(config, ErrorCode::kConfig);
  EXPECT_THAT(text, HasSubstr("ema_decay is 0.9, but with strategy 'central_storage'"));
}

}  // namespace
}  // namespace trainer
