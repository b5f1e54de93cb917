#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::HasSubstr;

TEST(SigmoidTest, HandValues) {
  LayerRunner layer(R"(type: "Sigmoid")", {{4}});
  ExpectNear(layer.Forward({0, 1.0986123f, -100, 100}), {0.5, 0.75, 0, 1}, 1e-6f);
  layer.Backward({{1, 1, 1, 1}});
  ExpectNear(layer.InputGradient(), {0.25, 0.1875, 0, 0}, 1e-6f);
}

TEST(SigmoidTest, GradientMatchesDifferences) {
  LayerRunner layer(R"(type: "Sigmoid")", {{2, 3, 2, 2}});
  layer.SetInput(0, LayerRunner::SomeValues(24, 1));
  layer.ExpectGradient();
}

TEST(SigmoidTest, GoldenValues) { ExpectGoldenFile("layers/activations/sigmoid.txt"); }

TEST(SigmoidTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(R"(type: "Sigmoid")", {{2, 3, 4, 5}});
}

TEST(SigmoidTest, RefusesTwoInputs) {
  EXPECT_THAT(RefusalOf(R"(type: "Sigmoid")", {{2}, {2}}),
              HasSubstr("layer 'it' (Sigmoid): it needs 1 bottom, but 2 are"));
}

TEST(SigmoidTest, Bf16IsNearF32) { ExpectBf16Near(R"(type: "Sigmoid")", {{2, 3, 5, 6}}); }

}  // namespace
}  // namespace trainer
