#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::HasSubstr;

TEST(ContrastiveLossTest, HandValues) {
  LayerRunner layer(R"(type: "ContrastiveLoss" contrastive_loss_param { margin: 7 })",
                    {{2, 2}, {2, 2}, {2}});
  layer.SetInput(0, {3, 4, 3, 4});
  layer.SetInput(1, {0, 0, 0, 0});
  layer.SetInput(2, {1, 0});
  layer.Forward();
  ExpectNear(layer.Output(), {(25 + 4) / 4.0f}, 1e-5f);
  layer.Backward({{1}});
  ExpectNear(layer.InputGradient(0), {1.5, 2, -0.6f, -0.8f}, 1e-4f);
  ExpectNear(layer.InputGradient(1), {-1.5, -2, 0.6f, 0.8f}, 1e-4f);
}

TEST(ContrastiveLossTest, GradientMatchesDifferences) {
  for (const char* fields : {"margin: 2", "margin: 3 legacy_version: true"}) {
    LayerRunner layer(
        std::string("type: \"ContrastiveLoss\" contrastive_loss_param { ") + fields + " }",
        {{4, 3}, {4, 3}, {4}});
    layer.SetInput(0, LayerRunner::SomeValues(12, 1));
    layer.SetInput(1, LayerRunner::SomeValues(12, 2));
    layer.SetInput(2, {1, 0, 0, 1});
    layer.ExpectGradient({.inputs = {0, 1}});
  }
}

TEST(ContrastiveLossTest, GoldenValues) {
  ExpectGoldenFile("layers/losses/contrastive_loss.txt", 2e-4f);
}

TEST(ContrastiveLossTest, ImagesEqualThePlainOrder) {
  std::vector<std::vector<float>> losses, gradients;
  for (const Shape& shape : {Shape{2, 3, 2, 2}, Shape{2, 12}}) {
    LayerRunner layer(R"(type: "ContrastiveLoss" contrastive_loss_param { margin: 9 })",
                      {shape, shape, {2}});
    for (const int i : {0, 1}) layer.SetInput(i, LayerRunner::SomeValues(24, 1 + i));
    layer.SetInput(2, {1, 0});
    layer.Forward();
    layer.Backward({{1}});
    losses.push_back(layer.Output());
    gradients.push_back(layer.InputGradient());
  }
  ExpectNear(losses[0], losses[1], 1e-5f);
  ExpectNear(gradients[0], gradients[1], 1e-5f);
}

TEST(ContrastiveLossTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(R"(type: "ContrastiveLoss")", {{2, 3}, {2, 3}, {2}}, {{}, {}, {1, 0}});
}

TEST(ContrastiveLossTest, RefusesShapesThatDoNotFit) {
  EXPECT_THAT(RefusalOf(R"(type: "ContrastiveLoss")", {{2, 3}, {2, 4}, {2}}),
              HasSubstr("features have shapes (2, 3) and (2, 4); they must be equal"));
  EXPECT_THAT(
      RefusalOf(R"(type: "ContrastiveLoss")", {{2, 3}, {2, 3}, {3}}),
      HasSubstr("bottom 'x2' has shape (3); it needs one number for each of the 2 pairs: 1 if "
                "both have the same class, 0 if not"));
}

}  // namespace
}  // namespace trainer
