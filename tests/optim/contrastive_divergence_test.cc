// Tests runs of a solver of type CD.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "solver/small_run.h"
#include "support/error_of.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/solver_state.h"

namespace trainer {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;

const std::string kContrastiveDivergenceNet = R"(
layer { name: "data" type: "DummyData" top: "x"
        dummy_data_param { shape { dim: 8 dim: 6 } data_filler { type: "uniform" min: 0 max: 1 } } }
layer { name: "rbm" type: "RBM" bottom: "x" top: "h" top: "error" top: "free_energy"
        loss_weight: 0 loss_weight: 1 loss_weight: 0
        rbm_param { num_output: 5 weight_filler { type: "gaussian" std: 0.1 } } }
)";

const std::string kContrastiveDivergenceFields =
    "type: \"CD\" base_lr: 0.05 lr_policy: \"fixed\" momentum: 0.5 momentum_policy: \"multistep\" "
    "momentum_stepvalue: 6 momentum_value: 0.9 weight_decay: 0.001 display: 1 test_interval: 7 "
    "test_iter: 2 ";

TEST(ContrastiveDivergenceRunTest, ResumesBitForBit) {
  for (const char* chains : {"cd_param { steps: 2 }", "cd_param { persistent: true chains: 3 }",
                             "cd_param { persistent: true sparsity_target: 0.1 } iter_size: 2"}) {
    const std::string fields = Join(kContrastiveDivergenceFields, chains, " ");
    SmallRun whole(fields + "max_iter: 20 ", kContrastiveDivergenceNet);
    whole.Solve();
    SmallRun first(fields + "max_iter: 10 ", kContrastiveDivergenceNet);
    first.Solve();
    SolverOptions options;
    options.snapshot = first.PathOf("s_iter_10.solverstate");
    SmallRun second(fields + "max_iter: 20 ", kContrastiveDivergenceNet, options,
                    first.folder_path);
    second.Solve();
    EXPECT_THAT(second.Weights(), ElementsAreArray(whole.Weights())) << chains;
    const std::vector<float>& losses = whole.observer.losses;
    EXPECT_THAT(second.observer.losses,
                ElementsAreArray(std::vector<float>(losses.begin() + 10, losses.end())))
        << chains;
  }
}

// The layer computes its gradient from chains, and scales it like a loss gradient.
TEST(ContrastiveDivergenceRunTest, ALossScaleChangesNoBitAndIsInSnapshots) {
  const std::string fields = kContrastiveDivergenceFields + "max_iter: 9 clip_gradients: 0.05 ";
  SmallRun plain(fields, kContrastiveDivergenceNet),
      scaled(fields + "loss_scale: 0 loss_scale_window: 4 ", kContrastiveDivergenceNet);
  plain.Solve();
  scaled.Solve();
  EXPECT_EQ(scaled.observer.losses, plain.observer.losses);
  EXPECT_EQ(scaled.observer.notes, plain.observer.notes);
  EXPECT_TRUE(scaled.Weights() == plain.Weights());
  const LoadedState loaded = ReadState(scaled.PathOf("s_iter_9.solverstate"));
  EXPECT_EQ(loaded.state.loss_scale().factor(), 4 * 65536);
  EXPECT_EQ(loaded.state.loss_scale().good(), 1u);
}

TEST(ContrastiveDivergenceRunTest, TheChainsChangeWhatIsLearned) {
  SmallRun one(kContrastiveDivergenceFields + "max_iter: 5 ", kContrastiveDivergenceNet);
  SmallRun many(kContrastiveDivergenceFields + "max_iter: 5 cd_param { steps: 5 } ",
                kContrastiveDivergenceNet);
  SmallRun persistent(kContrastiveDivergenceFields + "max_iter: 5 cd_param { persistent: true } ",
                      kContrastiveDivergenceNet);
  for (SmallRun* run : {&one, &many, &persistent}) run->Solve();
  EXPECT_NE(one.Weights(), many.Weights());
  EXPECT_NE(one.Weights(), persistent.Weights());
}

TEST(ContrastiveDivergenceRunTest, RefusesANetWithoutAMachineThatLearns) {
  const auto [code, text] =
      ErrorOf([] { SmallRun(kContrastiveDivergenceFields + "max_iter: 5 "); });
  EXPECT_EQ(code, ErrorCode::kConfig);
  EXPECT_THAT(text, HasSubstr("type is CD, but no RBM layer of the training net learns with it"));
}

TEST(ContrastiveDivergenceRunTest, RefusesChainsThatMakeNoSense) {
  const auto refusal = [](const std::string& param) {
    return ErrorOf([&] {
             SmallRun(kContrastiveDivergenceFields + "max_iter: 5\ncd_param { " + param + " } ",
                      kContrastiveDivergenceNet);
           })
        .second;
  };
  EXPECT_THAT(refusal("steps: 0"), HasSubstr(":5:1: cd_param: steps is 0"));
  EXPECT_THAT(refusal("chains: 4"), HasSubstr("chains is given without persistent: true"));
  EXPECT_THAT(refusal("persistent: true chains: -1"), HasSubstr("chains is -1"));
  EXPECT_THAT(refusal("sparsity_target: 1"), HasSubstr("sparsity_target is 1"));
  EXPECT_THAT(refusal("sparsity_cost: -1"), HasSubstr("sparsity_cost is -1"));
  EXPECT_THAT(refusal("sparsity_decay: 1"), HasSubstr("sparsity_decay is 1"));
}

TEST(ContrastiveDivergenceRunTest, RefusesTheChainsOfAnotherNumber) {
  SmallRun first(
      kContrastiveDivergenceFields + "max_iter: 2 cd_param { persistent: true chains: 30 } ",
      kContrastiveDivergenceNet);
  first.Solve();
  SolverOptions options;
  options.snapshot = first.PathOf("s_iter_2.solverstate");
  const auto [code, text] = ErrorOf([&] {
    SmallRun(kContrastiveDivergenceFields + "max_iter: 4 cd_param { persistent: true chains: 40 } ",
             kContrastiveDivergenceNet, options);
  });
  EXPECT_EQ(code, ErrorCode::kBadSnapshot);
  EXPECT_THAT(text, HasSubstr("bytes for the state of this layer"));
}

}  // namespace
}  // namespace trainer
