#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;

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
  for (const GoldenCase& golden : ReadGolden("relu.txt")) ExpectGolden(golden);
}

TEST(ReluTest, InPlaceEqualsNotInPlace) {
  for (const char* slope : {"0", "0.25", "-0.5"}) {
    const std::string text =
        std::string("type: \"ReLU\" relu_param { negative_slope: ") + slope + " }";
    std::vector<std::vector<float>> y, dx;
    for (const bool in_place : {false, true}) {
      LayerRunner relu(text, {{2, 3, 4, 5}}, {.in_place = in_place});
      y.push_back(relu.Forward(LayerRunner::SomeValues(120, 1)));
      relu.Backward({LayerRunner::SomeValues(120, 2)});
      dx.push_back(relu.InputGradient());
    }
    EXPECT_EQ(y[0], y[1]);
    EXPECT_EQ(dx[0], dx[1]);
  }
}

}  // namespace
}  // namespace trainer
