#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(L1LossTest, HandValues) {
  LayerRunner layer(R"(type: "L1Loss")", {{2, 2}, {2, 2}});
  layer.SetInput(0, {1, 2, 3, 4});
  layer.SetInput(1, {1, 4, 3, 0});
  layer.Forward();
  EXPECT_THAT(layer.Output(), ElementsAre(3));
  layer.Backward({{3}});
  EXPECT_THAT(layer.InputGradient(0), ElementsAre(0, -1.5f, 0, 1.5f));
  EXPECT_THAT(layer.InputGradient(1), ElementsAre(0, 1.5f, 0, -1.5f));
}

// The inputs differ by at least 1/32, half a grid step of SomeValues. Finite differences change
// them by less, so no difference crosses the kink.
TEST(L1LossTest, GradientMatchesDifferences) {
  LayerRunner layer(R"(type: "L1Loss")", {{2, 3, 2, 2}, {2, 3, 2, 2}});
  std::vector<float> targets = LayerRunner::SomeValues(24, 2);
  for (float& target : targets) target += 1.0f / 32;
  layer.SetInput(0, LayerRunner::SomeValues(24, 1));
  layer.SetInput(1, targets);
  layer.ExpectGradient({.inputs = {0, 1}});
}

TEST(L1LossTest, GoldenValues) { ExpectGoldenFile("layers/losses/l1_loss.txt"); }

TEST(L1LossTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(R"(type: "L1Loss")", {{2, 3, 4, 5}, {2, 3, 4, 5}});
}

TEST(L1LossTest, RefusesInputsOfDifferentShapes) {
  EXPECT_THAT(RefusalOf(R"(type: "L1Loss")", {{2, 3}, {2, 4}}),
              HasSubstr("bottom 'x1' has shape (2, 4), but bottom 'x0' has (2, 3); they must be"));
}

}  // namespace
}  // namespace trainer
