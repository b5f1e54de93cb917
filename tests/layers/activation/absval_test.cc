#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(AbsValTest, HandValues) {
  LayerRunner layer(R"(type: "AbsVal")", {{3}});
  EXPECT_THAT(layer.Forward({-3, 0, 2}), ElementsAre(3, 0, 2));
  layer.Backward({{5, 5, 5}});
  EXPECT_THAT(layer.InputGradient(), ElementsAre(-5, 0, 5));
}

TEST(AbsValTest, GradientMatchesDifferences) {
  LayerRunner layer(R"(type: "AbsVal")", {{2, 3, 2, 2}});
  layer.SetInput(0, LayerRunner::SomeValues(24, 1, 0, 0.05f));
  layer.ExpectGradient();
}

TEST(AbsValTest, GoldenValues) { ExpectGoldenFile("layers/activations/absval.txt"); }

TEST(AbsValTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(R"(type: "AbsVal")", {{2, 3, 4, 5}});
}

TEST(AbsValTest, RefusesTwoInputs) {
  EXPECT_THAT(RefusalOf(R"(type: "AbsVal")", {{2}, {2}}),
              HasSubstr("layer 'it' (AbsVal): it needs 1 bottom, but 2 are"));
}

TEST(AbsValTest, Bf16IsNearF32) { ExpectBf16Near(R"(type: "AbsVal")", {{2, 3, 5, 6}}); }

}  // namespace
}  // namespace trainer
