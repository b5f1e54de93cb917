#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::HasSubstr;

TEST(MishTest, HandValues) {
  LayerRunner layer(R"(type: "Mish")", {{4}});
  // For x = 0: log(1 + exp(0)) = log 2 and tanh(log 2) = 3/5. For x = log 2: tanh(log 3) = 4/5.
  const float log2 = 0.6931472f;
  ExpectNear(layer.Forward({0, log2, 100, -100}), {0, 0.8f * log2, 100, 0}, 1e-6f);
  layer.Backward({{1, 1, 1, 1}});
  EXPECT_NEAR(layer.InputGradient()[0], 0.6f, 1e-6f);
  EXPECT_EQ(layer.InputGradient()[2], 1);
  EXPECT_NEAR(layer.InputGradient()[3], 0, 1e-6f);
}

TEST(MishTest, GradientMatchesDifferences) {
  LayerRunner layer(R"(type: "Mish")", {{2, 3, 2, 2}});
  layer.SetInput(0, LayerRunner::SomeValues(24, 1));
  layer.ExpectGradient();
}

TEST(MishTest, GoldenValues) { ExpectGoldenFile("layers/activations/mish.txt"); }

TEST(MishTest, InPlaceEqualsNotInPlace) { ExpectInPlaceEqual(R"(type: "Mish")", {{2, 3, 4, 5}}); }

TEST(MishTest, RefusesTwoInputs) {
  EXPECT_THAT(RefusalOf(R"(type: "Mish")", {{2}, {2}}),
              HasSubstr("layer 'it' (Mish): it needs 1 bottom, but 2 are"));
}

TEST(MishTest, Bf16IsNearF32) { ExpectBf16Near(R"(type: "Mish")", {{2, 3, 5, 6}}); }

}  // namespace
}  // namespace trainer
