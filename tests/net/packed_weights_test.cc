// Packed copies of weights: layers compute the same with them, and read them only in a scope.

#include "trainer/net/packed_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/net_text.h"
#include "support/test_device.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Weights that cuDNN takes in another order or type, one that it takes unchanged in f32, one that
// two layers share, and one that does not learn.
NetSpec MadeOf(const std::string& type) {
  return NetFromText(Join("default_forward_type: ", type, R"(
layer { name: "data" type: "DummyData" top: "x" top: "label" dummy_data_param {
        shape { dim: 4 dim: 3 dim: 8 dim: 8 } shape { dim: 4 }
        data_filler { type: "constant" value: 0.5 } data_filler { type: "constant" value: 1 } } }
layer { name: "conv1" type: "Convolution" bottom: "x" top: "conv1" param { lr_mult: 0 }
        convolution_param { num_output: 6 kernel_size: 3 weight_filler { type: "msra" } } }
layer { name: "conv2" type: "Convolution" bottom: "conv1" top: "conv2" param { name: "shared" }
        convolution_param { num_output: 6 kernel_size: 3 pad: 1 bias_term: false
                            weight_filler { type: "msra" } } }
layer { name: "conv3" type: "Convolution" bottom: "conv2" top: "conv3" param { name: "shared" }
        convolution_param { num_output: 6 kernel_size: 3 pad: 1 bias_term: false
                            weight_filler { type: "msra" } } }
layer { name: "point" type: "Convolution" bottom: "conv3" top: "point"
        convolution_param { num_output: 5 kernel_size: 1 weight_filler { type: "msra" } } }
layer { name: "ip" type: "InnerProduct" bottom: "point" top: "ip"
        inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" })"));
}

class WeightCopiesTest : public testing::TestWithParam<const char*> {
 protected:
  WeightCopiesTest()
      : spec_(MadeOf(GetParam())),
        net_(spec_, QuietOptions(caffe::TRAIN), *device_, params_),
        copies_(net_) {}

  // Returns the loss of a pass and its gradients.
  std::vector<float> Pass() {
    params_.ClearGradients();
    std::vector<float> numbers = {net_.Forward()};
    net_.Backward();
    const std::span<float> all = params_.Gradients();
    for (const float value : ReadFloats(*device_, all.data(), static_cast<int64_t>(all.size()))) {
      numbers.push_back(value);
    }
    return numbers;
  }
  std::vector<float> PassWithCopies() {
    const PackedWeights::Scope scope(copies_);
    return Pass();
  }
  void DoubleWeights() {
    const std::span<float> all = params_.Weights();
    std::vector<float> values = ReadFloats(*device_, all.data(), static_cast<int64_t>(all.size()));
    for (float& value : values) value *= 2;
    WriteFloats(*device_, values, all.data());
  }

  NetSpec spec_;
  std::unique_ptr<Device> device_ = MakeTestDevice(1);
  ParamStore params_{*device_};
  Net net_;
  PackedWeights copies_;
};
INSTANTIATE_TEST_SUITE_P(In, WeightCopiesTest, testing::Values("FLOAT", "BFLOAT16", "FLOAT16"),
                         [](const auto& type) { return std::string(type.param); });

TEST_P(WeightCopiesTest, LayersComputeTheSameBitForBit) {
  const std::vector<float> without = Pass();
  copies_.Write();
  EXPECT_EQ(PassWithCopies(), without);
  DoubleWeights();
  const std::vector<float> doubled = Pass();
  EXPECT_NE(doubled, without);
  copies_.Write();
  EXPECT_EQ(PassWithCopies(), doubled);
}

TEST_P(WeightCopiesTest, LayersReadThemInAScopeAlone) {
  if (copies_.empty()) GTEST_SKIP() << "layers multiply by the weights as they are";
  copies_.Write();
  DoubleWeights();
  const std::vector<float> doubled = Pass();
  EXPECT_NE(PassWithCopies(), doubled) << "which nobody wrote since";
  EXPECT_EQ(Pass(), doubled);
}

TEST_P(WeightCopiesTest, ThoseOfAGpuAreOfEachWeightThatItTakesInAnotherForm) {
  const bool in_f32 = GetParam() == std::string("FLOAT");
  std::string copied;
  for (size_t i = 0; i < net_.params().size(); ++i) {
    if (copies_.by_param()[i].to != nullptr) copied += net_.params()[i]->key + " ";
  }
  const std::string in_16_bits = "conv1:0 shared point:0 ip:0 ";
  EXPECT_EQ(copied, !TestsOnGpu() ? in_f32 ? "" : "ip:0 "
                    : in_f32      ? "conv1:0 shared "
                                  : in_16_bits);
}

}  // namespace
}  // namespace trainer
