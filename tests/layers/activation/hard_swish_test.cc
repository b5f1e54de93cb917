#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(HardSwishTest, HandValues) {
  LayerRunner layer(R"(type: "HardSwish")", {{6}});
  EXPECT_THAT(layer.Forward({-4, -3, 0, 1.5, 3, 4}), ElementsAre(0, 0, 0, 1.125, 3, 4));
  layer.Backward({{6, 6, 6, 6, 6, 6}});
  EXPECT_THAT(layer.InputGradient(), ElementsAre(0, 0, 3, 6, 6, 6));
}

TEST(HardSwishTest, GradientMatchesDifferences) {
  LayerRunner layer(R"(type: "HardSwish")", {{2, 3, 2, 2}});
  layer.SetInput(0, LayerRunner::SomeValues(24, 1));
  layer.ExpectGradient();
}

TEST(HardSwishTest, GoldenValues) { ExpectGoldenFile("layers/activations/hard_swish.txt"); }

TEST(HardSwishTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(R"(type: "HardSwish")", {{2, 3, 4, 5}});
}

TEST(HardSwishTest, RefusesTwoInputs) {
  EXPECT_THAT(RefusalOf(R"(type: "HardSwish")", {{2}, {2}}),
              HasSubstr("layer 'it' (HardSwish): it needs 1 bottom, but 2 are"));
}

TEST(HardSwishTest, Bf16IsNearF32) { ExpectBf16Near(R"(type: "HardSwish")", {{2, 3, 5, 6}}); }

}  // namespace
}  // namespace trainer
