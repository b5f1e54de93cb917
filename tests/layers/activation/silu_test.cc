#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::HasSubstr;

TEST(SiluTest, HandValues) {
  LayerRunner layer(R"(type: "SiLU")", {{4}});
  const float log3 = 1.0986123f;
  ExpectNear(layer.Forward({0, log3, -log3, 50}), {0, 0.75f * log3, -0.25f * log3, 50}, 1e-6f);
}

TEST(SiluTest, GradientMatchesDifferences) {
  LayerRunner layer(R"(type: "SiLU")", {{2, 3, 2, 2}});
  layer.SetInput(0, LayerRunner::SomeValues(24, 1));
  layer.ExpectGradient();
}

TEST(SiluTest, GoldenValues) { ExpectGoldenFile("layers/activations/silu.txt"); }

TEST(SiluTest, InPlaceEqualsNotInPlace) { ExpectInPlaceEqual(R"(type: "SiLU")", {{2, 3, 4, 5}}); }

TEST(SiluTest, RefusesTwoInputs) {
  EXPECT_THAT(RefusalOf(R"(type: "SiLU")", {{2}, {2}}),
              HasSubstr("layer 'it' (SiLU): it needs 1 bottom, but 2 are"));
}

TEST(SiluTest, Bf16IsNearF32) { ExpectBf16Near(R"(type: "SiLU")", {{2, 3, 5, 6}}); }

}  // namespace
}  // namespace trainer
