#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Normalize(const std::string& fields = "") {
  return "type: \"Normalize\"\nnorm_param { " + fields + " }";
}

TEST(NormalizeTest, HandValuesOfEachPixel) {
  LayerRunner layer(
      Normalize("across_spatial: false channel_shared: false scale_filler { value: 20 }"),
      {{1, 2, 1, 2}});
  EXPECT_THAT(layer.GetParam(0), ElementsAre(20, 20));
  layer.SetParam(0, {10, 100});
  ExpectNear(layer.Forward({3, 0, 4, -2}), {6, 0, 80, -100}, 1e-6f);
  layer.Backward({{0, 0, 1, 1}});
  ExpectNear(layer.ParamGradient(0), {0, 0.8f - 1}, 1e-6f);
}

TEST(NormalizeTest, HandValuesOfTheWholeItem) {
  LayerRunner layer(Normalize(), {{2, 2, 1, 2}});
  EXPECT_THAT(layer.GetParam(0), ElementsAre(1));
  ExpectNear(layer.Forward({1, 1, 1, 1, 0, 0, 3, 4}), {0.5, 0.5, 0.5, 0.5, 0, 0, 0.6f, 0.8f},
             1e-6f);
  layer.Backward({{1, 0, 0, 0, 0, 1, 0, 0}});
  ExpectNear(layer.InputGradient(), {0.375f, -0.125f, -0.125f, -0.125f, 0, 0.2f, 0, 0}, 1e-6f);
  ExpectNear(layer.ParamGradient(0), {0.5f}, 1e-6f);
}

TEST(NormalizeTest, HandValuesOfEpsInTheRoot) {
  LayerRunner layer(Normalize("eps: 16"), {{1, 2}});
  ExpectNear(layer.Forward({0, 3}), {0, 0.6f}, 1e-6f);
}

// With a factor of 1, the gradient of a channel's factor is the sum of dy * y. The shapes have
// several chunks of pixels, and more channels than the CPU sums together, or fewer.
TEST(NormalizeTest, FactorsGradientIsTheSumOverTheOutputs) {
  for (const Shape& shape : {Shape{3, 2, 70}, Shape{2, 17, 5, 9}, Shape{70, 3}, Shape{5, 20, 3}}) {
    for (const char* fields : {"", "across_spatial: false", "channel_shared: false",
                               "across_spatial: false channel_shared: false"}) {
      SCOPED_TRACE(shape.ToString() + fields);
      LayerRunner layer(Normalize(fields), {shape});
      const auto dy = LayerRunner::SomeValues(shape.Count(), 2);
      const auto y = layer.Forward(LayerRunner::SomeValues(shape.Count(), 1, 0, 0.25f));
      layer.Backward({dy});
      std::vector<float> want(layer.ParamGradient(0).size());
      for (size_t i = 0; i < y.size(); ++i) {
        const size_t channel =
            i / static_cast<size_t>(shape.Count(2)) % static_cast<size_t>(shape[1]);
        want[want.size() == 1 ? 0 : channel] += dy[i] * y[i];
      }
      ExpectNear(layer.ParamGradient(0), want, 2e-5f);
    }
  }
}

TEST(NormalizeTest, GradientMatchesDifferences) {
  for (const char* fields : {"", "across_spatial: false", "channel_shared: false",
                             "across_spatial: false channel_shared: false eps: 0.1"}) {
    SCOPED_TRACE(fields);
    LayerRunner layer(Normalize(fields), {{2, 3, 2, 2}});
    layer.SetInput(0, LayerRunner::SomeValues(24, 1, 0, 0.25f));
    layer.SetParam(0, LayerRunner::SomeValues(layer.ParamAt(0).count(), 2, 0, 0.5f));
    layer.ExpectGradient();
  }
}

TEST(NormalizeTest, GoldenValues) { ExpectGoldenFile("layers/norms/normalize.txt"); }

TEST(NormalizeTest, InPlaceEqualsNotInPlace) { ExpectInPlaceEqual(Normalize(), {{2, 3, 4, 5}}); }

TEST(NormalizeTest, RefusesBadFieldsAndShapes) {
  EXPECT_THAT(RefusalOf(Normalize("eps: -1"), {{2, 3}}),
              HasSubstr("net.prototxt:4:14: layer 'it' (Normalize): eps is -1; it must not be "
                        "negative"));
  EXPECT_THAT(RefusalOf(Normalize(), {{3}}),
              HasSubstr("bottom 'x0' has shape (3), but this layer needs (N, C,"));
}

TEST(NormalizeTest, Bf16IsNearF32) {
  ExpectBf16Near(Normalize("across_spatial: false channel_shared: false"), {{2, 3, 5, 6}},
                 {.kink = 0, .gap = 0.25f});
}

}  // namespace
}  // namespace trainer
