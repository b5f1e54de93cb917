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

}  // namespace
}  // namespace trainer
