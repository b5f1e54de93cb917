#include "trainer/net/passes_identical.h"

#include <gtest/gtest.h>

#include <memory>

#include "support/net_text.h"
#include "support/test_device.h"
#include "trainer/net/net.h"

namespace trainer {
namespace {

// Returns whether passes are identical in a net that has `layer` between its weights, blob "w", and
// its loss, which reads blob "y".
bool Alike(const std::string& layer) {
  const NetSpec spec = NetFromText(R"(
layer { name: "weights" type: "Parameter" top: "w" parameter_param { shape { dim: 2 dim: 3 dim: 4 dim: 4 } } }
)" + layer + R"(
layer { name: "loss" type: "Reduction" bottom: "y" top: "loss" loss_weight: 1 }
)");
  const auto device = MakeTestDevice(1);
  ParamStore params(*device);
  return PassesAreIdentical(Net(spec, QuietOptions(caffe::TRAIN), *device, params));
}

TEST(PassesAreAlikeTest, WhereTheOutputDependsOnWeightsAlone) {
  EXPECT_TRUE(Alike("layer { name: 'l' type: 'ReLU' bottom: 'w' top: 'y' }"));
  EXPECT_TRUE(
      Alike("layer { name: 'l' type: 'Convolution' bottom: 'w' top: 'y' "
            "convolution_param { num_output: 2 kernel_size: 3 } }"));
  EXPECT_TRUE(
      Alike("layer { name: 'l' type: 'Pooling' bottom: 'w' top: 'y' "
            "pooling_param { kernel_size: 2 } }"));
}

TEST(PassesAreAlikeTest, NotWhereALayerDrawsNumbers) {
  EXPECT_FALSE(Alike("layer { name: 'l' type: 'Dropout' bottom: 'w' top: 'y' }"));
  EXPECT_FALSE(
      Alike("layer { name: 'relu' type: 'ReLU' bottom: 'w' top: 'w' } "
            "layer { name: 'l' type: 'Dropout' bottom: 'w' top: 'y' }"));
  EXPECT_FALSE(Alike("layer { name: 'l' type: 'Noise' bottom: 'w' top: 'y' }"));
  EXPECT_FALSE(
      Alike("layer { name: 'l' type: 'Pooling' bottom: 'w' top: 'y' "
            "pooling_param { pool: STOCHASTIC kernel_size: 2 } }"));
  EXPECT_FALSE(
      Alike("layer { name: 'l' type: 'RBM' bottom: 'w' top: 'y' top: 'error' "
            "rbm_param { num_output: 2 } }"));
}

TEST(PassesAreAlikeTest, NotWhereALayerBringsABatch) {
  EXPECT_FALSE(
      Alike("layer { name: 'l' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 "
            "dim: 4 dim: 4 } } } "
            "layer { name: 's' type: 'Eltwise' bottom: 'w' bottom: 'x' top: 'y' }"));
  EXPECT_FALSE(
      Alike("layer { name: 'l' type: 'DummyData' top: 'x' dummy_data_param { shape { dim: 2 "
            "dim: 3 dim: 4 dim: 4 } } } "
            "layer { name: 's' type: 'Eltwise' bottom: 'w' bottom: 'x' top: 'y' }"));
}

TEST(PassesAreAlikeTest, NotWhereALayerKeepsAveragesOrAState) {
  EXPECT_FALSE(Alike("layer { name: 'l' type: 'BatchNorm' bottom: 'w' top: 'y' }"));
}

}  // namespace
}  // namespace trainer
