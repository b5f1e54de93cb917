#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::HasSubstr;

TEST(EluTest, HandValues) {
  LayerRunner layer(R"(type: "ELU" elu_param { alpha: 2 })", {{3}});
  ExpectNear(layer.Forward({3, 0, -0.6931472f}), {3, 0, -1}, 1e-6f);
  layer.Backward({{1, 1, 1}});
  ExpectNear(layer.InputGradient(), {1, 2, 1}, 1e-6f);
}

TEST(EluTest, GradientMatchesDifferences) {
  for (const char* fields : {"alpha: 1", "alpha: 0.5 lambda: 2", "alpha: -1"}) {
    LayerRunner layer(std::string("type: \"ELU\" elu_param { ") + fields + " }", {{2, 3, 2, 2}});
    layer.SetInput(0, LayerRunner::SomeValues(24, 1, 0, 0.05f));
    layer.ExpectGradient();
  }
}

TEST(EluTest, GoldenValues) { ExpectGoldenFile("layers/activations/elu.txt"); }

TEST(EluTest, InPlaceEqualsNotInPlace) {
  for (const char* alpha : {"1", "0", "-0.5"}) {
    ExpectInPlaceEqual(std::string("type: \"ELU\" elu_param { alpha: ") + alpha + " }",
                       {{2, 3, 4, 5}});
  }
}

TEST(EluTest, RefusesTwoInputs) {
  EXPECT_THAT(RefusalOf(R"(type: "ELU")", {{2}, {2}}),
              HasSubstr("layer 'it' (ELU): it needs 1 bottom, but 2 are"));
}

TEST(EluTest, Bf16IsNearF32) { ExpectBf16Near(R"(type: "ELU")", {{2, 3, 5, 6}}); }

}  // namespace
}  // namespace trainer
