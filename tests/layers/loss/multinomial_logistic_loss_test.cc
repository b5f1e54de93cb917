#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/layer_checks.h"
#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::HasSubstr;

const NotChecked kMultinomialLogisticLossNoImages(
    "MultinomialLogisticLoss", LayerCheck::kImages,
    "takes one score per class, no image of more than one pixel");

TEST(MultinomialLogisticLossTest, HandValues) {
  LayerRunner layer(R"(type: "MultinomialLogisticLoss")", {{2, 2}, {2}});
  layer.SetInput(0, {0.5, 0.5, 0, 1});
  layer.SetInput(1, {0, 0});
  layer.Forward();
  ExpectNear(layer.Output(), {(0.6931472f + 46.051702f) / 2}, 1e-6f);
  layer.Backward({{2}});
  EXPECT_FLOAT_EQ(layer.InputGradient()[0], -2);
  EXPECT_EQ(layer.InputGradient()[1], 0);
  EXPECT_FLOAT_EQ(layer.InputGradient()[2], -1e20f);
}

TEST(MultinomialLogisticLossTest, GradientMatchesDifferences) {
  LayerRunner layer(R"(type: "MultinomialLogisticLoss")", {{3, 2}, {3}});
  layer.SetInput(0, {0.3f, 0.7f, 0.5f, 0.5f, 0.9f, 0.2f});
  layer.SetInput(1, {0, 1, 0});
  layer.ExpectGradient({.step = 2e-3f});
}

TEST(MultinomialLogisticLossTest, GoldenValues) {
  ExpectGoldenFile("layers/losses/multinomial_logistic_loss.txt");
}

TEST(MultinomialLogisticLossTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(R"(type: "MultinomialLogisticLoss")", {{2, 2}, {2}},
                     {{0.5, 0.5, 0.25, 0.75}, {1, 0}});
}

TEST(MultinomialLogisticLossTest, RefusesBadLabels) {
  LayerRunner layer(R"(type: "MultinomialLogisticLoss")", {{2, 3}, {2}});
  layer.SetInput(1, {NAN, 0});
  EXPECT_THAT([&] { layer.Forward(); },
              testing::ThrowsMessage<Error>(HasSubstr("label nan of item 0 of the batch is not a "
                                                      "finite number")));
}

}  // namespace
}  // namespace trainer
