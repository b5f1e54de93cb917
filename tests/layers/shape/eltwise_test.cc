#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Eltwise(const std::string& fields) {
  return "type: \"Eltwise\"\neltwise_param { " + fields + " }";
}

TEST(EltwiseTest, HandValuesOfASum) {
  LayerRunner layer(Eltwise("coeff: 1 coeff: -2"), {{2}, {2}});
  layer.SetInput(0, {1, 2});
  layer.SetInput(1, {3, 4});
  layer.Forward();
  EXPECT_THAT(layer.Output(), ElementsAre(-5, -6));
  layer.Backward({{1, 10}});
  EXPECT_THAT(layer.InputGradient(0), ElementsAre(1, 10));
  EXPECT_THAT(layer.InputGradient(1), ElementsAre(-2, -20));
}

TEST(EltwiseTest, HandValuesOfTiesOfTheMaximumGoToTheSecond) {
  LayerRunner layer(Eltwise("operation: MAX"), {{4}, {4}, {4}});
  layer.SetInput(0, {5, 5, 5, 1});
  layer.SetInput(1, {5, 5, 4, 2});
  layer.SetInput(2, {5, 6, 5, 2});
  layer.Forward();
  EXPECT_THAT(layer.Output(), ElementsAre(5, 6, 5, 2));
  layer.Backward({{1, 1, 1, 1}});
  EXPECT_THAT(layer.InputGradient(0), ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(layer.InputGradient(1), ElementsAre(1, 0, 0, 1));
  EXPECT_THAT(layer.InputGradient(2), ElementsAre(0, 1, 0, 0));
}

TEST(EltwiseTest, HandValuesOfAProductWithZeros) {
  LayerRunner layer(Eltwise("operation: PROD"), {{2}, {2}});
  layer.SetInput(0, {0, 3});
  layer.SetInput(1, {5, 0});
  layer.Forward();
  layer.Backward({{1, 1}});
  EXPECT_THAT(layer.InputGradient(0), ElementsAre(5, 0));
  EXPECT_THAT(layer.InputGradient(1), ElementsAre(0, 3));
}

TEST(EltwiseTest, GradientMatchesDifferences) {
  for (const char* fields : {"", "coeff: 2 coeff: -1 coeff: 0.5", "operation: PROD"}) {
    LayerRunner layer(Eltwise(fields), {{2, 3, 2, 2}, {2, 3, 2, 2}, {2, 3, 2, 2}});
    for (int i = 0; i < 3; ++i) layer.SetInput(i, LayerRunner::SomeValues(24, 1u + i));
    layer.ExpectGradient({.inputs = {0, 1, 2}});
  }
}

TEST(EltwiseTest, GoldenValues) { ExpectGoldenFile("layers/products/eltwise.txt"); }

TEST(EltwiseTest, InPlaceEqualsNotInPlace) {
  for (const char* fields : {"", "coeff: 2 coeff: -1", "operation: PROD", "operation: MAX"}) {
    ExpectInPlaceEqual(Eltwise(fields), {{2, 3, 4, 5}, {2, 3, 4, 5}});
  }
}

TEST(EltwiseTest, RefusesBadFields) {
  EXPECT_THAT(RefusalOf(Eltwise("coeff: 1"), {{2}, {2}}),
              HasSubstr("net.prototxt:4:17: layer 'it' (Eltwise): coeff is given 1 times for 2 "
                        "bottoms; give none, or one per bottom"));
  EXPECT_THAT(RefusalOf(Eltwise("operation: MAX coeff: 1 coeff: 1"), {{2}, {2}}),
              HasSubstr("coeff works only with operation SUM; remove it"));
  EXPECT_THAT(RefusalOf(Eltwise(""), {{2}, {3}}),
              HasSubstr("bottom 'x1' has shape (3), but bottom 'x0' has (2); they must be"));
}

TEST(EltwiseTest, Bf16IsNearF32) {
  ExpectBf16Near(R"(type: "Eltwise" eltwise_param { operation: SUM })",
                 {{2, 3, 5, 6}, {2, 3, 5, 6}, {2, 3, 5, 6}});
  ExpectBf16Near(R"(type: "Eltwise" eltwise_param { operation: PROD })",
                 {{2, 3, 5, 6}, {2, 3, 5, 6}, {2, 3, 5, 6}});
  ExpectBf16Near(R"(type: "Eltwise" eltwise_param { operation: MAX })",
                 {{2, 3, 5, 6}, {2, 3, 5, 6}, {2, 3, 5, 6}});
}

}  // namespace
}  // namespace trainer
