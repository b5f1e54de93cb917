#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::HasSubstr;

TEST(SwishTest, HandValues) {
  LayerRunner layer(R"(type: "Swish" swish_param { beta: 2 })", {{3}});
  ExpectNear(layer.Forward({0, 0.5493061f, -0.5493061f}), {0, 0.4119796f, -0.1373265f}, 1e-6f);
}

TEST(SwishTest, GradientMatchesDifferences) {
  LayerRunner layer(R"(type: "Swish" swish_param { beta: 1.5 })", {{2, 3, 2, 2}});
  layer.SetInput(0, LayerRunner::SomeValues(24, 1));
  layer.ExpectGradient();
}

TEST(SwishTest, GoldenValues) { ExpectGoldenFile("layers/activations/swish.txt"); }

TEST(SwishTest, InPlaceEqualsNotInPlace) { ExpectInPlaceEqual(R"(type: "Swish")", {{2, 3, 4, 5}}); }

TEST(SwishTest, RefusesTwoInputs) {
  EXPECT_THAT(RefusalOf(R"(type: "Swish")", {{2}, {2}}),
              HasSubstr("layer 'it' (Swish): it needs 1 bottom, but 2 are"));
}

TEST(SwishTest, Bf16IsNearF32) { ExpectBf16Near(R"(type: "Swish")", {{2, 3, 5, 6}}); }

}  // namespace
}  // namespace trainer
