// Whole runs with decay_on_bias_and_norm: false.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "small_run.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::ElementsAreArray;
using testing::Not;

const std::string kDecayFields =
    "base_lr: 0.1 lr_policy: \"fixed\" momentum: 0.9 weight_decay: 0.05 max_iter: 6 ";

// Returns a net with weights, biases and normalisations. The arguments are the `param` entries of
// the weights, the biases and the scales.
std::string DecayNet(const std::string& weight, const std::string& bias, const std::string& scale) {
  std::string net = R"(
layer { name: "data" type: "DummyData" top: "x" top: "label" dummy_data_param {
          shape { dim: 8 dim: 2 dim: 5 dim: 5 } shape { dim: 8 }
          data_filler { type: "gaussian" } data_filler { type: "constant" value: 1 } } }
layer { name: "conv" type: "Convolution" bottom: "x" top: "conv" WEIGHT BIAS
        convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" }
                            bias_filler { type: "constant" value: 0.5 } } }
layer { name: "bn" type: "BatchNorm" bottom: "conv" top: "conv" }
layer { name: "scale" type: "Scale" bottom: "conv" top: "conv" SCALE BIAS
        scale_param { bias_term: true bias_filler { type: "constant" value: 0.25 } } }
layer { name: "relu" type: "PReLU" bottom: "conv" top: "relu" }
layer { name: "norm" type: "LayerNorm" bottom: "relu" top: "norm" SCALE BIAS }
layer { name: "ip" type: "InnerProduct" bottom: "norm" top: "ip" WEIGHT BIAS
        inner_product_param { num_output: 3 weight_filler { type: "xavier" }
                              bias_filler { type: "constant" value: 0.5 } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)";
  for (const auto& [name, text] : std::vector<std::pair<std::string, std::string>>{
           {"WEIGHT", weight}, {"BIAS", bias}, {"SCALE", scale}}) {
    for (size_t at = net.find(name); at != net.npos; at = net.find(name, at)) {
      net.replace(at, name.size(), text);
    }
  }
  return net;
}

std::vector<float> LearnedWith(const std::string& more, const std::string& net) {
  SmallRun run(kDecayFields + more, net);
  run.Solve();
  return run.Weights();
}

TEST(DecayOnBiasAndNormTest, FalseEqualsADecayMultOf0AtEachOfThem) {
  const std::string plain = DecayNet("", "", "");
  const std::string none = "param { decay_mult: 0 }";
  const std::vector<float> by_hand =
      LearnedWith("", DecayNet("param { decay_mult: 1 }", none, none));
  EXPECT_THAT(LearnedWith("decay_on_bias_and_norm: false ", plain), ElementsAreArray(by_hand));
  EXPECT_THAT(LearnedWith("decay_on_bias_and_norm: true ", plain),
              ElementsAreArray(LearnedWith("", plain)));
  EXPECT_THAT(LearnedWith("", plain), Not(ElementsAreArray(by_hand)));
}

TEST(DecayOnBiasAndNormTest, ADecayMultOfTheNetGoesFirst) {
  const std::string one = "param { decay_mult: 1 }";
  const std::string net = DecayNet(one, one, one);
  EXPECT_THAT(LearnedWith("decay_on_bias_and_norm: false ", net),
              ElementsAreArray(LearnedWith("", net)));
  const std::string rate = "param { lr_mult: 1 }";
  EXPECT_THAT(LearnedWith("decay_on_bias_and_norm: false ", DecayNet(rate, rate, rate)),
              ElementsAreArray(LearnedWith("decay_on_bias_and_norm: false ", DecayNet("", "", ""))))
      << "a param without decay_mult";
}

TEST(DecayOnBiasAndNormTest, EachParameterHasItsFactor) {
  SmallRun run(kDecayFields + "decay_on_bias_and_norm: false ", DecayNet("", "", ""));
  std::vector<std::string> without;
  for (const Param* param : run.solver->train_net().params()) {
    if (param->is_learnable && param->decay_mult == 0) {
      without.push_back(Join(param->layer, ":", param->index));
    }
  }
  EXPECT_THAT(without,
              testing::ElementsAre("conv:1", "scale:0", "scale:1", "norm:0", "norm:1", "ip:1"));
}

}  // namespace
}  // namespace trainer
