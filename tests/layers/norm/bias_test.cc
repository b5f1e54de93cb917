#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Bias(const std::string& fields) {
  return "type: \"Bias\"\nbias_param { " + fields + " }";
}

TEST(BiasTest, HandValues) {
  LayerRunner layer(Bias(""), {{1, 2, 1, 2}});
  EXPECT_THAT(layer.GetParam(0), ElementsAre(0, 0));
  layer.SetParam(0, {10, 20});
  EXPECT_THAT(layer.Forward({1, 2, 3, 4}), ElementsAre(11, 12, 23, 24));
  layer.Backward({{1, 2, 3, 4}});
  EXPECT_THAT(layer.InputGradient(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(layer.ParamGradient(0), ElementsAre(3, 7));
}

TEST(BiasTest, HandValuesOfFourChannels) {
  LayerRunner layer(Bias(""), {{1, 4, 1, 2}});
  layer.SetParam(0, {10, 20, 30, 40});
  EXPECT_THAT(layer.Forward({1, 2, 3, 4, 5, 6, 7, 8}), ElementsAre(11, 12, 23, 24, 35, 36, 47, 48));
}

TEST(BiasTest, GradientMatchesDifferences) {
  LayerRunner layer(Bias("axis: 0"), {{2, 3, 2, 2}, {2, 3, 2, 2}});
  layer.SetInput(0, LayerRunner::SomeValues(24, 1));
  layer.SetInput(1, LayerRunner::SomeValues(24, 2));
  layer.ExpectGradient({.inputs = {0, 1}});
}

TEST(BiasTest, GoldenValues) { ExpectGoldenFile("layers/products/bias.txt", 2e-5f); }

TEST(BiasTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(Bias("filler { value: 3 }"), {{2, 3, 4, 5}});
}

TEST(BiasTest, RefusesAxesThatDoNotFit) {
  EXPECT_THAT(
      RefusalOf(Bias("axis: 3"), {{2, 3}}),
      HasSubstr("net.prototxt:4:14: layer 'it' (Bias): axis is 3, but the input (2, 3) has 2 "
                "axes"));
  EXPECT_THAT(RefusalOf(Bias("axis: 0"), {{2, 3}, {3}}), HasSubstr("bottom 'x1' has shape (3)"));
}

TEST(BiasTest, Bf16IsNearF32) {
  ExpectBf16Near(R"(type: "Bias")", {{2, 3, 5, 6}});
  ExpectBf16Near(R"(type: "Bias" bias_param { axis: 0 })", {{2, 3, 5, 6}, {2}});
}

}  // namespace
}  // namespace trainer
