#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(EuclideanLossTest, HandValues) {
  LayerRunner layer(R"(type: "EuclideanLoss")", {{2, 2}, {2, 2}});
  layer.SetInput(0, {1, 2, 3, 4});
  layer.SetInput(1, {1, 4, 3, 0});
  layer.Forward();
  EXPECT_THAT(layer.Output(), ElementsAre(5));
  layer.Backward({{3}});
  EXPECT_THAT(layer.InputGradient(0), ElementsAre(0, -3, 0, 6));
  EXPECT_THAT(layer.InputGradient(1), ElementsAre(0, 3, 0, -6));
}

TEST(EuclideanLossTest, GradientMatchesDifferences) {
  LayerRunner layer(R"(type: "EuclideanLoss")", {{2, 3, 2, 2}, {2, 3, 2, 2}});
  layer.SetInput(0, LayerRunner::SomeValues(24, 1));
  layer.SetInput(1, LayerRunner::SomeValues(24, 2));
  layer.ExpectGradient({.inputs = {0, 1}});
}

TEST(EuclideanLossTest, GoldenValues) { ExpectGoldenFile("layers/losses/euclidean_loss.txt"); }

TEST(EuclideanLossTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(R"(type: "EuclideanLoss")", {{2, 3, 4, 5}, {2, 3, 4, 5}});
}

TEST(EuclideanLossTest, RefusesInputsOfDifferentShapes) {
  EXPECT_THAT(RefusalOf(R"(type: "EuclideanLoss")", {{2, 3}, {2, 4}}),
              HasSubstr("bottom 'x1' has shape (2, 4), but bottom 'x0' has (2, 3); they must be"));
}

TEST(EuclideanLossTest, AxesOfLengthOneAtTheEndDoNotMatter) {
  const std::vector<float> scores = {0.5f, -1, 2}, targets = {1, 0, 0.25f};
  std::vector<float> losses, gradients;
  for (const auto& [score, target] : std::vector<std::pair<Shape, Shape>>{
           {{3}, {3}}, {{3, 1}, {3}}, {{3}, {3, 1, 1, 1}}, {{3, 1, 1, 1}, {3, 1}}}) {
    LayerRunner layer(R"(type: "EuclideanLoss")", {score, target});
    layer.SetInput(0, scores);
    layer.SetInput(1, targets);
    layer.Forward();
    layer.Backward({{1}});
    if (losses.empty()) losses = layer.Output();
    if (gradients.empty()) gradients = layer.InputGradient(0);
    EXPECT_EQ(layer.Output(), losses);
    EXPECT_EQ(layer.InputGradient(0), gradients);
  }
  EXPECT_THAT(RefusalOf(R"(type: "EuclideanLoss")", {{2, 3, 2, 1}, {2, 3, 2}}),
              HasSubstr("bottom 'x1' has shape (2, 3, 2), but bottom 'x0' has (2, 3, 2, 1)"));
}

}  // namespace
}  // namespace trainer
