#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::HasSubstr;

TEST(BnllTest, HandValues) {
  LayerRunner layer(R"(type: "BNLL")", {{4}});
  ExpectNear(layer.Forward({0, 1.0986123f, 200, -200}), {0.6931472f, 1.3862944f, 200, 0}, 1e-6f);
}

TEST(BnllTest, GradientMatchesDifferences) {
  LayerRunner layer(R"(type: "BNLL")", {{2, 3, 2, 2}});
  layer.SetInput(0, LayerRunner::SomeValues(24, 1));
  layer.ExpectGradient();
}

TEST(BnllTest, GoldenValues) { ExpectGoldenFile("layers/activations/bnll.txt"); }

TEST(BnllTest, InPlaceEqualsNotInPlace) { ExpectInPlaceEqual(R"(type: "BNLL")", {{2, 3, 4, 5}}); }

TEST(BnllTest, RefusesTwoInputs) {
  EXPECT_THAT(RefusalOf(R"(type: "BNLL")", {{2}, {2}}),
              HasSubstr("layer 'it' (BNLL): it needs 1 bottom, but 2 are"));
}

TEST(BnllTest, Bf16IsNearF32) { ExpectBf16Near(R"(type: "BNLL")", {{2, 3, 5, 6}}); }

}  // namespace
}  // namespace trainer
