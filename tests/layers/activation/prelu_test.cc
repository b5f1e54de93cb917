#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(PReluTest, HandValues) {
  LayerRunner layer(R"(type: "PReLU")", {{1, 2, 1, 2}});
  EXPECT_THAT(layer.GetParam(0), ElementsAre(0.25, 0.25));
  layer.SetParam(0, {0.5, 2});
  EXPECT_THAT(layer.Forward({-2, 4, -3, 5}), ElementsAre(-1, 4, -6, 5));
  layer.Backward({{1, 1, 10, 10}});
  EXPECT_THAT(layer.InputGradient(), ElementsAre(0.5, 1, 20, 10));
  EXPECT_THAT(layer.ParamGradient(0), ElementsAre(-2, -30));
}

TEST(PReluTest, HandValuesOfFourChannels) {
  LayerRunner layer(R"(type: "PReLU")", {{1, 4, 1, 2}});
  layer.SetParam(0, {0.5, 2, 3, 4});
  EXPECT_THAT(layer.Forward({-2, 4, -3, 5, -1, -2, 7, -3}),
              ElementsAre(-1, 4, -6, 5, -3, -6, 7, -12));
  layer.Backward({{1, 1, 1, 1, 10, 10, 10, 10}});
  EXPECT_THAT(layer.InputGradient(), ElementsAre(0.5, 1, 2, 1, 30, 30, 10, 40));
  EXPECT_THAT(layer.ParamGradient(0), ElementsAre(-2, -3, -30, -30));
}

TEST(PReluTest, GradientMatchesDifferences) {
  for (const int64_t channels : {3, 4}) {
    for (const char* shared : {"false", "true"}) {
      LayerRunner layer(
          std::string("type: \"PReLU\" prelu_param { channel_shared: ") + shared + " }",
          {{2, channels, 2, 2}});
      layer.SetInput(0, LayerRunner::SomeValues(8 * channels, 1, 0, 0.05f));
      layer.SetParam(0, LayerRunner::SomeValues(layer.ParamAt(0).count(), 2));
      layer.ExpectGradient();
    }
  }
}

TEST(PReluTest, GoldenValues) { ExpectGoldenFile("layers/activations/prelu.txt"); }

TEST(PReluTest, InPlaceEqualsNotInPlace) { ExpectInPlaceEqual(R"(type: "PReLU")", {{2, 3, 4, 5}}); }

TEST(PReluTest, RefusesAVector) {
  EXPECT_THAT(RefusalOf(R"(type: "PReLU")", {{5}}),
              HasSubstr("bottom 'x0' has shape (5), but this layer needs (N, C,"));
}

TEST(PReluTest, Bf16IsNearF32) {
  ExpectBf16Near(R"(type: "PReLU")", {{2, 3, 5, 6}});
  ExpectBf16Near(R"(type: "PReLU")", {{2, 4, 5, 6}});
}

}  // namespace
}  // namespace trainer
