#include "trainer/net/learning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/net_text.h"
#include "support/test_device.h"

namespace trainer {
namespace {

using testing::ElementsAre;

// Layer 'side' has no loss, 'tied' shares the weights of 'ip', and 'frozen' does not learn.
TEST(LearningTest, ParametersThatNoLossTrainsAreFound) {
  const NetSpec spec = NetFromText(R"(
layer { name: "data" type: "DummyData" top: "x" top: "label"
        dummy_data_param { shape { dim: 4 dim: 3 } shape { dim: 4 } } }
layer { name: "tied" type: "InnerProduct" bottom: "x" top: "tied" param { name: "w" }
        inner_product_param { num_output: 20 bias_term: false } }
layer { name: "frozen" type: "InnerProduct" bottom: "x" top: "frozen" param { lr_mult: 0 }
        inner_product_param { num_output: 20 bias_term: false } }
layer { name: "side" type: "InnerProduct" bottom: "x" top: "side"
        inner_product_param { num_output: 20 } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip" param { name: "w" }
        inner_product_param { num_output: 20 bias_term: false } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)");
  const std::unique_ptr<Device> device = MakeTestDevice(1);
  ParamStore params(*device);
  NetOptions options;
  options.state = StateOf(caffe::TRAIN);
  options.training = true;
  options.log = false;
  const Net net(spec, options, *device, params);
  EXPECT_TRUE(HasLoss(net));
  std::vector<std::string> layers;
  for (const Param* param : UntrainedParams(net)) layers.push_back(param->layer);
  EXPECT_THAT(layers, ElementsAre("side", "side"));
}

constexpr char kNormedNet[] = R"(
layer { name: "data" type: "DummyData" top: "x" top: "label"
        dummy_data_param { shape { dim: 4 dim: 3 } shape { dim: 4 }
        data_filler { type: "gaussian" mean: 3 } data_filler { type: "constant" } } }
layer { name: "ip1" type: "InnerProduct" bottom: "x" top: "a" FROZEN
        inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "bn1" type: "BatchNorm" bottom: "a" top: "b" FROZEN }
layer { name: "scale1" type: "Scale" bottom: "b" top: "b" FROZEN scale_param { bias_term: true } }
layer { name: "ip2" type: "InnerProduct" bottom: "b" top: "c"
        inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "c" bottom: "label" top: "loss" }
)";

// The net with `fields` in place of FROZEN.
struct NormedNet {
  explicit NormedNet(const std::string& fields, bool keeps_frozen = true) {
    std::string text = kNormedNet;
    for (size_t at = text.find("FROZEN"); at != text.npos; at = text.find("FROZEN")) {
      text.replace(at, 6, fields);
    }
    spec = NetFromText(text);
    NetOptions options = QuietOptions(caffe::TRAIN);
    options.keeps_frozen = keeps_frozen;
    net = std::make_unique<Net>(spec, options, *device, params);
  }
  std::vector<float> Numbers(size_t param) const {
    return WeightOf(*device, *net->params()[param]);
  }
  // Sets the averages of bn1: mean 1, variance 4.
  void SetAverages() const {
    for (const auto& [param, value] : {std::pair<size_t, float>(2, 2), {3, 8}, {4, 2}}) {
      const Param& to = *net->params()[param];
      params.Import(to, std::vector<float>(static_cast<size_t>(to.count()), value), to.weight);
    }
  }

  NetSpec spec;
  std::unique_ptr<Device> device = MakeTestDevice(1);
  ParamStore params{*device};
  std::unique_ptr<Net> net;
};

TEST(FreezeTest, FrozenLayersHaveNoGradientsAndAreCounted) {
  const NormedNet all(""), frozen("freeze: true");
  EXPECT_EQ(DescribeLearning(*all.net), "3 of 3 layers learn, 42 of 42 weights");
  EXPECT_EQ(DescribeLearning(*frozen.net),
            "1 of 3 layers learn, 12 of 42 weights; frozen: ip1, bn1, scale1");
  EXPECT_THAT(FrozenLayers(*frozen.net), ElementsAre("ip1", "bn1", "scale1"));
  EXPECT_THAT(UntrainedParams(*frozen.net), testing::IsEmpty());
  for (const Param* param : frozen.net->params()) {
    EXPECT_EQ(param->grad != nullptr, param->layer == "ip2") << param->key;
  }
  EXPECT_EQ(frozen.params.Gradients().size(), 32u) << "of ip2 alone, with padding";
}

TEST(FreezeTest, LrMultOfAFrozenLayerHasNoEffect) {
  const NormedNet net("freeze: true param { lr_mult: 0 } param { lr_mult: 0 }");
  EXPECT_EQ(LearningCounts(*net.net).weights, 12);
}

TEST(FreezeTest, ABatchNormUsesAndKeepsItsAverages) {
  const NormedNet frozen("freeze: true");
  frozen.SetAverages();
  frozen.net->Forward();
  frozen.net->Backward();
  EXPECT_THAT(frozen.Numbers(2), testing::Each(2.0f));
  EXPECT_THAT(frozen.Numbers(4), testing::Each(2.0f));
  const NormedNet learning("");
  learning.SetAverages();
  learning.net->Forward();
  EXPECT_THAT(learning.Numbers(4), testing::Each(testing::Ne(2.0f)));
}

TEST(FreezeTest, ABatchNormComputesTheSameAsWithUseGlobalStats) {
  const auto loss = [](const std::string& fields) {
    const NormedNet net(fields);
    net.SetAverages();
    return net.net->Forward();
  };
  const float frozen = loss("freeze: true");
  EXPECT_EQ(frozen, loss("batch_norm_param { use_global_stats: true }"));
  EXPECT_EQ(frozen, loss("freeze: true batch_norm_param { use_global_stats: false }"));
  EXPECT_NE(frozen, loss(""));
}

TEST(FreezeTest, EndsWithKeepsFrozen) {
  const NormedNet net("freeze: true", /*keeps_frozen=*/false);
  EXPECT_EQ(DescribeLearning(*net.net), "3 of 3 layers learn, 42 of 42 weights");
  for (const Param* param : net.net->params()) {
    EXPECT_EQ(param->was_frozen, param->layer != "ip2") << param->key;
  }
}

// The owner and the layer that shares its weights can each learn, but neither may move a frozen
// weight.
TEST(FreezeTest, AWeightIsFrozenIfOneOfItsLayersIs) {
  const auto learned = [](const std::string& first, const std::string& second) {
    const std::string ip =
        " type: 'InnerProduct' inner_product_param { num_output: 3 bias_term: false } ";
    const NetSpec spec = NetFromText(
        "layer { name: 'data' type: 'DummyData' top: 'x' top: 'y' "
        "dummy_data_param { shape { dim: 4 dim: 3 } shape { dim: 4 dim: 3 } } }"
        "layer { name: 'a' bottom: 'x' top: 'a' param { name: 'w' lr_mult: 2 } " +
        first + ip + "}" + "layer { name: 'b' bottom: 'a' top: 'b' param { name: 'w' } " + second +
        ip + "}" +
        "layer { name: 'loss' type: 'EuclideanLoss' bottom: 'b' bottom: 'y' top: 'loss' }");
    const std::unique_ptr<Device> device = MakeTestDevice(1);
    ParamStore params(*device);
    return LearningCounts(Net(spec, QuietOptions(caffe::TRAIN), *device, params)).params;
  };
  EXPECT_EQ(learned("", ""), 1);
  EXPECT_EQ(learned("freeze: true", ""), 0);
  EXPECT_EQ(learned("", "freeze: true"), 0);
}

}  // namespace
}  // namespace trainer
