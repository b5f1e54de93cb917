#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::HasSubstr;

std::string LayerNorm(const std::string& fields = "") {
  return "type: \"LayerNorm\"\nlayer_norm_param { " + fields + " }";
}

TEST(LayerNormTest, HandValues) {
  // The rows have the deviations 1 and 4.
  LayerRunner layer(LayerNorm("eps: 0"), {{2, 2}});
  ExpectNear(layer.Forward({1, 3, 2, 10}), {-1, 1, -1, 1}, 1e-6f);
  layer.SetParam(0, {1, 2});
  layer.SetParam(1, {0, 5});
  ExpectNear(layer.Forward({1, 3, 2, 10}), {-1, 7, -1, 7}, 1e-6f);
}

TEST(LayerNormTest, HandValuesOfAnImagesParametersInPlainOrder) {
  LayerRunner layer(LayerNorm("eps: 0"), {{1, 2, 1, 2}});
  EXPECT_EQ(layer.ParamAt(0).shape, Shape({2, 1, 2}));
  layer.SetParam(0, {1, 2, 3, 4});
  layer.SetParam(1, {0, 0, 0, 100});
  ExpectNear(layer.Forward({-1, 1, -1, 1}), {-1, 2, -3, 104}, 1e-6f);
}

TEST(LayerNormTest, GradientMatchesDifferences) {
  for (const char* fields : {"eps: 0.1", "eps: 0.1 scale_bias: false", "axis: -1 eps: 0.1",
                             "axis: 0 eps: 0.1", "axis: -2 eps: 0.1"}) {
    for (const Shape& shape : {Shape{2, 3, 2, 3}, Shape{3, 6}, Shape{2, 3, 4}}) {
      SCOPED_TRACE(fields + shape.ToString());
      LayerRunner layer(LayerNorm(fields), {shape});
      layer.SetInput(0, LayerRunner::SomeValues(shape.Count(), 1));
      if (layer.NumParams() > 0) {
        layer.SetParam(0, LayerRunner::SomeValues(layer.ParamAt(0).count(), 2));
      }
      layer.ExpectGradient();
    }
  }
}

TEST(LayerNormTest, GoldenValues) { ExpectGoldenFile("layers/norms/layer_norm.txt", 5e-5f); }

TEST(LayerNormTest, InPlaceEqualsNotInPlace) { ExpectInPlaceEqual(LayerNorm(), {{2, 3, 4, 5}}); }

TEST(LayerNormTest, ImagesEqualThePlainOrder) {
  const std::vector<float> values = LayerRunner::SomeValues(3 * 18 * 20, 1);
  for (const char* fields : {"", "axis: 0"}) {
    LayerRunner image(LayerNorm(fields), {{3, 18, 4, 5}}), plain(LayerNorm(fields), {{3, 18, 20}});
    ExpectNear(image.Forward(values), plain.Forward(values), 1e-5f);
    image.Backward({LayerRunner::SomeValues(3 * 18 * 20, 2)});
    plain.Backward({LayerRunner::SomeValues(3 * 18 * 20, 2)});
    ExpectNear(image.InputGradient(), plain.InputGradient(), 1e-5f);
    for (const int i : {0, 1}) ExpectNear(image.ParamGradient(i), plain.ParamGradient(i), 1e-5f);
  }
}

TEST(LayerNormTest, RefusesBadFields) {
  EXPECT_THAT(RefusalOf(LayerNorm("eps: -1"), {{2, 3}}),
              HasSubstr("net.prototxt:4:20: layer 'it' (LayerNorm): eps is -1; it must not be "
                        "negative"));
  EXPECT_THAT(RefusalOf(LayerNorm("axis: 2"), {{2, 3}}),
              HasSubstr("axis is 2, but the input (2, 3) has 2 axes"));
  EXPECT_THAT(RefusalOf(LayerNorm(), {{}}), HasSubstr("at least one axis"));
}

TEST(LayerNormTest, Bf16IsNearF32) {
  ExpectBf16Near(R"(type: "LayerNorm")", {{4, 20}});
  ExpectBf16Near(R"(type: "LayerNorm")", {{2, 3, 5, 6}});
}

}  // namespace
}  // namespace trainer
