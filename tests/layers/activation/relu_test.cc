#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ReluTest, HandValuesOfThePlainForm) {
  LayerRunner relu(R"(type: "ReLU")", {{4}});
  EXPECT_THAT(relu.Forward({-2, 0, 3, -0.5}), ElementsAre(0, 0, 3, 0));
}

TEST(ReluTest, HandValuesWithASlope) {
  LayerRunner relu(R"(type: "ReLU" relu_param { negative_slope: 0.5 })", {{3}});
  EXPECT_THAT(relu.Forward({-2, 0, 3}), ElementsAre(-1, 0, 3));
  relu.Backward({{10, 20, 30}});
  EXPECT_THAT(relu.InputGradient(), ElementsAre(5, 10, 30));
}

TEST(ReluTest, HandValuesOfInfinityAndNan) {
  const float inf = std::numeric_limits<float>::infinity();
  LayerRunner relu(R"(type: "ReLU")", {{3}});
  const std::vector<float> y = relu.Forward({inf, -inf, inf - inf});
  EXPECT_EQ(y[0], inf);
  EXPECT_EQ(y[1], 0);
  EXPECT_NE(y[2], y[2]) << "NaN must not turn into a number";
}

TEST(ReluTest, GradientMatchesDifferences) {
  for (const char* slope : {"0", "0.25", "-0.5"}) {
    LayerRunner relu(std::string("type: \"ReLU\" relu_param { negative_slope: ") + slope + " }",
                     {{2, 3, 4, 5}});
    relu.SetInput(0, LayerRunner::SomeValues(120, 1, 0, 0.1f));
    relu.ExpectGradient();
  }
}

TEST(ReluTest, GoldenValues) {
  for (const GoldenCase& golden : ReadGolden("layers/activations/relu.txt")) ExpectGolden(golden);
}

TEST(ReluTest, InPlaceEqualsNotInPlace) {
  for (const char* slope : {"0", "0.25", "-0.5"}) {
    ExpectInPlaceEqual(std::string("type: \"ReLU\" relu_param { negative_slope: ") + slope + " }",
                       {{2, 3, 4, 5}});
  }
}

TEST(ReluTest, RefusesTwoInputs) {
  EXPECT_THAT(RefusalOf(R"(type: "ReLU")", {{2}, {2}}),
              HasSubstr("layer 'it' (ReLU): it needs 1 bottom, but 2 are"));
}

TEST(ReluTest, Bf16IsNearF32) {
  ExpectBf16Near(R"(type: "ReLU")", {{2, 3, 5, 6}});
  ExpectBf16Near(R"(type: "ReLU" relu_param { negative_slope: 0.1 })", {{2, 3, 5, 6}});
  ExpectBf16Near(R"(type: "ReLU")", {{2, 3, 5, 6}}, {}, {.in_place = true});
}

}  // namespace
}  // namespace trainer
