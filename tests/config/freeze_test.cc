// Tests which layers --freeze selects, and which values it refuses.

#include "trainer/config/freeze.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config_testing.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kFreezeNet[] = R"(
layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 8 dim: 3 dim: 9 dim: 9 } } }
layer { name: "conv1" type: "Convolution" bottom: "x" top: "a" convolution_param { num_output: 4 } }
layer { name: "bn1" type: "BatchNorm" bottom: "a" top: "a" }
layer { name: "relu1" type: "ReLU" bottom: "a" top: "a" }
layer { name: "conv2" type: "Convolution" bottom: "a" top: "b" convolution_param { num_output: 4 } }
layer { name: "fc" type: "InnerProduct" bottom: "b" top: "c" inner_product_param { num_output: 2 } }
layer { name: "fc" type: "InnerProduct" bottom: "b" top: "d" include { phase: TEST }
        inner_product_param { num_output: 2 } }
)";

class FreezeTest : public testing::Test {
 protected:
  SolverSpec Frozen(const std::string& which, const std::string& net = kFreezeNet) const {
    const std::string path = folder_.Write("net.prototxt", net);
    SolverSpec spec = LoadSolver(
        folder_.Write("solver.prototxt", "net: \"" + path + "\" base_lr: 1 lr_policy: \"fixed\" " +
                                             "max_iter: 4 snapshot_prefix: \"s\""));
    FreezeLayers(which, &spec);
    return spec;
  }
  std::vector<std::string> NamesOf(const std::string& which) const {
    std::vector<std::string> names;
    const SolverSpec spec = Frozen(which);
    for (const LayerSpec& layer : spec.train.net->layers) {
      if (layer.proto().freeze()) names.push_back(layer.name());
    }
    return names;
  }
  std::string Refusal(const std::string& which, const std::string& net = kFreezeNet) const {
    const Caught caught = Catch([&] { Frozen(which, net); });
    EXPECT_EQ(caught.code, ErrorCode::kUsage) << caught.text;
    return caught.text;
  }

  TempFolder folder_;
};

TEST_F(FreezeTest, SelectsAllButTheLastTheFirstOrThoseThatMatch) {
  EXPECT_THAT(NamesOf("all-but-last"), ElementsAre("conv1", "bn1", "conv2"));
  EXPECT_THAT(NamesOf("2"), ElementsAre("conv1", "bn1"));
  EXPECT_THAT(NamesOf("/conv.*/"), ElementsAre("conv1", "conv2"));
  EXPECT_THAT(NamesOf("/fc/"), ElementsAre("fc", "fc")) << "of all phases";
}

TEST_F(FreezeTest, RefusesWhatSelectsNothingOrEverything) {
  EXPECT_EQ(Refusal("conv1"),
            "--freeze=conv1: it must be all-but-last, a number of layers, or a pattern of names "
            "between slashes, such as /conv1/");
  EXPECT_EQ(Refusal("4"),
            "--freeze=4: the net has 4 layers with weights, and at least one must learn; give a "
            "number from 1 to 3");
  EXPECT_THAT(Refusal("0"), HasSubstr("give a number from 1 to 3"));
  EXPECT_EQ(Refusal("/conv/"),
            "--freeze=/conv/: no layer has a name that matches /conv/; the pattern must match the "
            "whole name, as /.*conv.*/ does for every name that contains 'conv'; the layers with "
            "weights are conv1, bn1, conv2, fc");
  EXPECT_EQ(Refusal("/.*/"),
            "--freeze=/.*/: it selects every layer with weights, so nothing would learn");
  EXPECT_THAT(Refusal("/conv[/"), HasSubstr("--freeze=/conv[/: '/conv[/' is not a regular "
                                            "expression: "));
  const std::string one =
      "layer { name: 'x' type: 'Input' top: 'x' } layer { name: 'ip' type: "
      "'InnerProduct' bottom: 'x' top: 'y' }";
  EXPECT_EQ(Refusal("all-but-last", one),
            "--freeze=all-but-last: the net has 1 layer with weights, so freezing would leave "
            "nothing to learn");
}

}  // namespace
}  // namespace trainer
