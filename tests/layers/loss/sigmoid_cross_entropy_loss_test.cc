#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::HasSubstr;

TEST(SigmoidCrossEntropyLossTest, HandValues) {
  LayerRunner layer(R"(type: "SigmoidCrossEntropyLoss")", {{1, 2}, {1, 2}});
  layer.SetInput(0, {0, 1.0986123f});
  layer.SetInput(1, {1, 0.5});
  layer.Forward();
  ExpectNear(layer.Output(), {0.6931472f + 0.8369882f}, 1e-6f);
  layer.Backward({{2}});
  ExpectNear(layer.InputGradient(), {-1, 0.5}, 1e-6f);
}

TEST(SigmoidCrossEntropyLossTest, HandValuesOfGreatScoresStayFinite) {
  LayerRunner layer(R"(type: "SigmoidCrossEntropyLoss")", {{1, 2}, {1, 2}});
  layer.SetInput(1, {0, 1});
  ExpectNear(layer.Forward({1000, -1000}), {2000}, 1e-6f);
}

TEST(SigmoidCrossEntropyLossTest, GradientMatchesDifferences) {
  LayerRunner layer(R"(type: "SigmoidCrossEntropyLoss" loss_param { ignore_label: 9 })",
                    {{2, 3, 2, 1}, {2, 3, 2, 1}});
  layer.SetInput(0, LayerRunner::SomeValues(12, 1));
  layer.SetInput(1, {0, 1, 0.5, 9, 9.5, 1, 1, 0, 0, 0.25, 9, 1});
  layer.ExpectGradient();
}

TEST(SigmoidCrossEntropyLossTest, GoldenValues) {
  ExpectGoldenFile("layers/losses/sigmoid_cross_entropy_loss.txt");
}

TEST(SigmoidCrossEntropyLossTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(R"(type: "SigmoidCrossEntropyLoss")", {{2, 3, 4, 5}, {2, 3, 4, 5}});
}

TEST(SigmoidCrossEntropyLossTest, RefusesTargetsOfAnotherShape) {
  EXPECT_THAT(RefusalOf(R"(type: "SigmoidCrossEntropyLoss")", {{2, 3}, {2}}),
              HasSubstr("bottom 'x1' has shape (2), but bottom 'x0' has (2, 3); they must be"));
}

}  // namespace
}  // namespace trainer
