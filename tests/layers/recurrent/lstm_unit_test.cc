#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/layer_checks.h"
#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::HasSubstr;

const char kLstmUnitLayer[] = "type: \"LSTMUnit\"";

const NotChecked kLstmUnitNoImages("LSTMUnit", LayerCheck::kImages, "takes three axes");

TEST(LstmUnitTest, GoldenValues) { ExpectGoldenFile("layers/products/lstm_unit.txt"); }

TEST(LstmUnitTest, HandValuesOfASequenceThatGoesOnAndOneThatStarts) {
  LayerRunner layer(kLstmUnitLayer, {{1, 2, 1}, {1, 2, 4}, {1, 2}}, {.outputs = 2});
  layer.SetInput(1, {1, 2, 3, 0.5, 1, 2, 3, 0.5});
  layer.SetInput(2, {1, 0});
  layer.SetInput(0, {2, 2});
  layer.Forward();
  const auto logistic = [](double v) { return 1 / (1 + std::exp(-v)); };
  const double starts = logistic(1) * std::tanh(0.5), goes_on = starts + 2 * logistic(2);
  ExpectNear(layer.Output(0), {static_cast<float>(goes_on), static_cast<float>(starts)}, 1e-6f);
  ExpectNear(layer.Output(1),
             {static_cast<float>(logistic(3) * std::tanh(goes_on)),
              static_cast<float>(logistic(3) * std::tanh(starts))},
             1e-6f);
}

TEST(LstmUnitTest, GradientOfEitherOutputMatchesDifferences) {
  for (const int output : {0, 1}) {
    LayerRunner layer(kLstmUnitLayer, {{1, 3, 2}, {1, 3, 8}, {1, 3}}, {.outputs = 2});
    layer.SetInput(0, LayerRunner::SomeValues(6, 1));
    layer.SetInput(1, LayerRunner::SomeValues(24, 2));
    layer.SetInput(2, {1, 0, 1});
    layer.ExpectGradient({.inputs = {0, 1}, .output = output});
  }
}

TEST(LstmUnitTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(kLstmUnitLayer, {{1, 2, 1}, {1, 2, 4}, {1, 2}}, {{}, {}, {1, 0}},
                     {.outputs = 2});
}

TEST(LstmUnitTest, RefusesOtherShapes) {
  const RunnerOptions two = {.outputs = 2};
  EXPECT_THAT(RefusalOf(kLstmUnitLayer, {{2, 3, 2}, {1, 3, 8}, {1, 3}}, two),
              HasSubstr("bottom 'x0' has shape (2, 3, 2), but this layer needs (1, N, H), a"));
  EXPECT_THAT(
      RefusalOf(kLstmUnitLayer, {{1, 3, 2}, {1, 3, 6}, {1, 3}}, two),
      HasSubstr(
          "bottom 'x1' has shape (1, 3, 6), but this layer needs (1, 3, 8), four gates per state"));
  EXPECT_THAT(RefusalOf(kLstmUnitLayer, {{1, 3, 2}, {1, 3, 8}, {3}}, two),
              HasSubstr("bottom 'x2' has shape (3), but this layer needs (1, 3), 0 or 1 for each"));
}

}  // namespace
}  // namespace trainer
