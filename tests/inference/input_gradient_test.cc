#include "inspect/input_gradient.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "inference/small_net.h"

namespace trainer {
namespace {

using testing::IsEmpty;

constexpr char kInput[] = R"(layer { name: "data" type: "Input" top: "data"
  input_param { shape { dim: 1 dim: 2 dim: 3 dim: 4 } } }
)";
constexpr char kProduct[] = R"(layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 3 weight_filler { type: "gaussian" std: 1 } } }
)";
constexpr char kSoftmax[] = R"(layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }
)";

std::vector<float> SomeImage() {
  std::vector<float> image(24);
  for (size_t i = 0; i < image.size(); ++i) image[i] = std::sin(static_cast<float>(3 * i));
  return image;
}

// Returns the weights of value `index` of kProduct, in the order of files: (C, H, W).
std::vector<float> WeightsOfNumber(const SmallNet& net, size_t index) {
  const Param& weight = *net.net->params()[0];
  std::vector<float> rows(72);
  net.params.Export(weight, weight.weight, rows);
  const auto first = rows.begin() + static_cast<std::ptrdiff_t>(24 * index);
  return {first, first + 24};
}

TEST(InputGradientTest, HandValuesOfAnInnerProductAreItsWeights) {
  const SmallNet net(std::string(kInput) + kProduct + kSoftmax);
  InputGradient gradient(net.spec, *net.net, "prob");
  for (const size_t index : {0, 2}) {
    EXPECT_EQ(gradient.Compute(SomeImage(), index), WeightsOfNumber(net, index))
        << "of the score, whatever its probability";
  }
}

TEST(InputGradientTest, LossesDoNotCount) {
  const SmallNet net(std::string(kInput) + R"(
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" loss_weight: 3
  inner_product_param { num_output: 3 weight_filler { type: "gaussian" std: 1 } } }
layer { name: "sum" type: "Reduction" bottom: "ip" top: "sum" loss_weight: 5 }
)" + kSoftmax);
  EXPECT_EQ(InputGradient(net.spec, *net.net, "prob").Compute(SomeImage(), 1),
            WeightsOfNumber(net, 1));
}

TEST(InputGradientTest, IsEmptyForAnOutputThatDoesNotDependOnTheInput) {
  const SmallNet net(R"(layer { name: "one" type: "DummyData" top: "one"
  dummy_data_param { shape { dim: 1 dim: 3 } } }
)" + std::string(kInput) +
                     R"(layer { name: "relu" type: "ReLU" bottom: "data" top: "relu" })");
  EXPECT_THAT(InputGradient(net.spec, *net.net, "one").Compute(SomeImage(), 0), IsEmpty());
}

// The data has two readers, and each kind of layer has its own backward pass.
TEST(InputGradientTest, EqualsFiniteDifferences) {
  const SmallNet net(std::string(kInput) + R"(
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 4 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
layer { name: "tanh1" type: "TanH" bottom: "conv1" top: "conv1" }
layer { name: "conv2" type: "Convolution" bottom: "data" top: "conv2"
  convolution_param { num_output: 4 kernel_size: 1 weight_filler { type: "xavier" } } }
layer { name: "scale" type: "Scale" bottom: "conv2" top: "conv2"
  scale_param { bias_term: true filler { type: "uniform" min: 0.5 max: 2 } } }
layer { name: "sum" type: "Eltwise" bottom: "conv1" bottom: "conv2" top: "sum" }
layer { name: "drop" type: "Dropout" bottom: "sum" top: "sum" }
layer { name: "pool" type: "Pooling" bottom: "sum" top: "pool"
  pooling_param { pool: AVE kernel_size: 2 stride: 1 } }
layer { name: "sigmoid" type: "Sigmoid" bottom: "pool" top: "pool" }
layer { name: "ip" type: "InnerProduct" bottom: "pool" top: "ip"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
)" + kSoftmax);
  const auto score = [&](const std::vector<float>& image) {
    net.net->WriteNchw(image, net.net->Value("data"));
    net.net->Forward();
    return net.Get("ip")[1];
  };
  InputGradient gradient(net.spec, *net.net, "prob");
  std::vector<float> image = SomeImage();
  const std::vector<float> result = gradient.Compute(image, 1);
  ASSERT_EQ(result.size(), image.size());
  constexpr float kStep = 0.02f;
  float largest = 0;
  for (size_t i = 0; i < image.size(); ++i) {
    const float middle = image[i];
    image[i] = middle + kStep;
    const float above = score(image);
    image[i] = middle - kStep;
    const float below = score(image);
    image[i] = middle;
    EXPECT_NEAR(result[i], (above - below) / (2 * kStep), 2e-4) << i;
    largest = std::max(largest, std::fabs(result[i]));
  }
  EXPECT_GT(largest, 0.005f);
  EXPECT_EQ(gradient.Compute(image, 1), result) << "a second pass gives the same";
}

TEST(InputGradientTest, AnOutputWithoutSoftmaxAndItsFurtherReadersAreFine) {
  const SmallNet net(std::string(kInput) + kProduct + R"(
layer { name: "relu" type: "ReLU" bottom: "ip" top: "ip" }
layer { name: "power" type: "Power" bottom: "ip" top: "power" power_param { scale: 2 } }
)");
  InputGradient of_ip(net.spec, *net.net, "ip"), of_power(net.spec, *net.net, "power");
  for (size_t index = 0; index < 3; ++index) {
    std::vector<float> twice = of_ip.Compute(SomeImage(), index);
    for (float& value : twice) value *= 2;
    EXPECT_EQ(of_power.Compute(SomeImage(), index), twice);
  }
}

TEST(InputGradientTest, IsEmptyBehindALayerWithoutGradient) {
  const SmallNet net(std::string(kInput) + kProduct +
                     R"(layer { name: "top" type: "ArgMax" bottom: "ip" top: "top" })");
  EXPECT_THAT(InputGradient(net.spec, *net.net, "top").Compute(SomeImage(), 0), IsEmpty());
}

}  // namespace
}  // namespace trainer
