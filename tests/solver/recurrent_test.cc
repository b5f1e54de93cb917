// Snapshots include a recurrent net's state between batches.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "small_run.h"

namespace trainer {
namespace {

const char kRecurrentNet[] = R"(
layer { name: "data" type: "DummyData" top: "x" top: "cont" top: "wanted"
  dummy_data_param { shape { dim: 3 dim: 4 dim: 5 } shape { dim: 3 dim: 4 }
    shape { dim: 3 dim: 4 dim: 2 } data_filler { type: "gaussian" }
    data_filler { type: "constant" value: 1 } data_filler { type: "gaussian" } } }
layer { name: "lstm" type: "LSTM" bottom: "x" bottom: "cont" top: "lstm"
  recurrent_param { num_output: 6 weight_filler { type: "xavier" } } }
layer { name: "rnn" type: "RNN" bottom: "lstm" bottom: "cont" top: "rnn"
  recurrent_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "ip" type: "InnerProduct" bottom: "rnn" top: "ip"
  inner_product_param { num_output: 2 axis: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "wanted" top: "loss" }
)";

const std::string kRecurrentFields =
    "base_lr: 0.1 lr_policy: \"fixed\" momentum: 0.9 display: 1 test_interval: 3 test_iter: 2 ";

TEST(RecurrentSolverTest, ResumesInTheMiddleOfASequenceBitForBit) {
  SmallRun whole(kRecurrentFields + "max_iter: 12 ", kRecurrentNet);
  whole.Solve();
  SmallRun first(kRecurrentFields + "max_iter: 5 ", kRecurrentNet);
  first.Solve();
  SolverOptions options;
  options.snapshot = first.PathOf("s_iter_5.solverstate");
  SmallRun second(kRecurrentFields + "max_iter: 12 ", kRecurrentNet, options, first.folder_path);
  second.Solve();
  EXPECT_THAT(second.Weights(), testing::ElementsAreArray(whole.Weights()));
  const std::vector<float>& losses = whole.observer.losses;
  EXPECT_THAT(second.observer.losses,
              testing::ElementsAreArray(std::vector<float>(losses.begin() + 5, losses.end())));
}

}  // namespace
}  // namespace trainer
