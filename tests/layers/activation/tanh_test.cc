#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(TanhTest, HandValues) {
  LayerRunner layer(R"(type: "TanH")", {{5}});
  ExpectNear(layer.Forward({0, 0.5493061f, -0.5493061f, 100, -100}), {0, 0.5, -0.5, 1, -1}, 1e-6f);
}

TEST(TanhTest, HandValuesNearZeroKeepTheirDigits) {
  LayerRunner layer(R"(type: "TanH")", {{3}});
  EXPECT_THAT(layer.Forward({1e-6f, -1e-20f, 0}), ElementsAre(1e-6f, -1e-20f, 0));
}

TEST(TanhTest, HandValuesMeetWhereTheFormulasDo) {
  LayerRunner layer(R"(type: "TanH")", {{2}});
  const std::vector<float> y = layer.Forward({0.62499994f, 0.625f});
  EXPECT_NEAR(y[0], 0.5545998f, 1e-6f);
  EXPECT_LE(y[0], y[1] + 1e-7f);
}

TEST(TanhTest, GradientMatchesDifferences) {
  LayerRunner layer(R"(type: "TanH")", {{2, 3, 2, 2}});
  layer.SetInput(0, LayerRunner::SomeValues(24, 1));
  layer.ExpectGradient();
}

TEST(TanhTest, GoldenValues) { ExpectGoldenFile("layers/activations/tanh.txt"); }

TEST(TanhTest, InPlaceEqualsNotInPlace) { ExpectInPlaceEqual(R"(type: "TanH")", {{2, 3, 4, 5}}); }

TEST(TanhTest, RefusesTwoOutputs) {
  EXPECT_THAT(RefusalOf(R"(type: "TanH")", {{2}}, {.outputs = 2}),
              HasSubstr("layer 'it' (TanH): it needs 1 top, but 2 are"));
}

TEST(TanhTest, Bf16IsNearF32) { ExpectBf16Near(R"(type: "TanH")", {{2, 3, 5, 6}}); }

}  // namespace
}  // namespace trainer
