#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Scale(const std::string& fields) {
  return "type: \"Scale\"\nscale_param { " + fields + " }";
}

TEST(ScaleTest, HandValues) {
  LayerRunner layer(Scale("bias_term: true"), {{1, 2, 1, 2}});
  EXPECT_THAT(layer.GetParam(0), ElementsAre(1, 1));
  EXPECT_THAT(layer.GetParam(1), ElementsAre(0, 0));
  layer.SetParam(0, {2, 10});
  layer.SetParam(1, {0.5, -0.5});
  EXPECT_THAT(layer.Forward({1, 2, 3, 4}), ElementsAre(2.5, 4.5, 29.5, 39.5));
  layer.Backward({{1, 1, 1, 2}});
  EXPECT_THAT(layer.InputGradient(), ElementsAre(2, 2, 10, 20));
  EXPECT_THAT(layer.ParamGradient(0), ElementsAre(3, 11));
  EXPECT_THAT(layer.ParamGradient(1), ElementsAre(2, 3));
}

TEST(ScaleTest, HandValuesOfFourChannels) {
  for (const bool has_bias : {false, true}) {
    LayerRunner layer(Scale(has_bias ? "bias_term: true" : ""), {{1, 4, 1, 2}});
    layer.SetParam(0, {2, 10, 3, 0.5});
    if (has_bias) layer.SetParam(1, {1, 2, 3, 4});
    const float b = has_bias ? 1 : 0;
    EXPECT_THAT(layer.Forward({1, 2, 3, 4, 5, 6, 7, 8}),
                ElementsAre(2 + b, 4 + b, 30 + 2 * b, 40 + 2 * b, 15 + 3 * b, 18 + 3 * b,
                            3.5f + 4 * b, 4 + 4 * b));
    layer.Backward({{1, 1, 1, 2, 1, 1, 1, 2}});
    EXPECT_THAT(layer.InputGradient(), ElementsAre(2, 2, 10, 20, 3, 3, 0.5, 1));
  }
}

TEST(ScaleTest, GradientMatchesDifferences) {
  for (const char* fields : {"bias_term: true", "axis: 2 num_axes: 2", "num_axes: 0",
                             "axis: 0 num_axes: -1 bias_term: true", "num_axes: 2"}) {
    SCOPED_TRACE(fields);
    LayerRunner layer(Scale(fields), {{2, 3, 2, 2}});
    layer.SetInput(0, LayerRunner::SomeValues(24, 1));
    layer.SetParam(0, LayerRunner::SomeValues(layer.ParamAt(0).count(), 2));
    layer.ExpectGradient();
  }
}

// The repetitions of a factor are a row of an image, again in each image. All sums are exact.
TEST(ScaleTest, GradientOfAFactorPerChannelAndRow) {
  constexpr size_t kImages = 40, kFactors = 2 * 3, kWidth = 70;
  LayerRunner layer(Scale("num_axes: 2 bias_term: true"), {{kImages, 2, 3, kWidth}});
  const auto x = LayerRunner::SomeValues(kImages * kFactors * kWidth, 1);
  const auto dy = LayerRunner::SomeValues(kImages * kFactors * kWidth, 2);
  layer.Forward(x);
  layer.Backward({dy});
  std::vector<float> want_scale(kFactors), want_shift(kFactors);
  for (size_t i = 0; i < x.size(); ++i) {
    want_scale[i / kWidth % kFactors] += dy[i] * x[i];
    want_shift[i / kWidth % kFactors] += dy[i];
  }
  EXPECT_EQ(layer.ParamGradient(0), want_scale);
  EXPECT_EQ(layer.ParamGradient(1), want_shift);
}

TEST(ScaleTest, GradientOfASecondInputMatchesDifferences) {
  LayerRunner layer(Scale("axis: 0 bias_term: true"), {{2, 3, 2, 2}, {2, 3}});
  layer.SetInput(0, LayerRunner::SomeValues(24, 1));
  layer.SetInput(1, LayerRunner::SomeValues(6, 2));
  layer.ExpectGradient({.inputs = {0, 1}});
}

TEST(ScaleTest, GoldenValues) { ExpectGoldenFile("layers/products/scale.txt", 2e-5f); }

TEST(ScaleTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(Scale("bias_term: true filler { value: 3 }"), {{2, 3, 4, 5}});
}

TEST(ScaleTest, RefusesAxesThatDoNotFit) {
  EXPECT_THAT(
      RefusalOf(Scale("axis: 3"), {{2, 3}}),
      HasSubstr("net.prototxt:4:15: layer 'it' (Scale): axis is 3, but the input (2, 3) has "
                "2 axes"));
  EXPECT_THAT(RefusalOf(Scale("num_axes: 2147483647"), {{2, 3}}),
              HasSubstr("num_axes is 2147483647; from axis 1 on"));
  EXPECT_THAT(RefusalOf(Scale("num_axes: 2"), {{2, 3}}),
              HasSubstr("num_axes is 2; from axis 1 on, the input (2, 3) has 1 (or -1: all of "
                        "them)"));
  EXPECT_THAT(RefusalOf(Scale(""), {{2, 3}, {2}}),
              HasSubstr("bottom 'x1' has shape (2), which does not match the axes from 1 of "
                        "bottom 'x0' (2, 3)"));
  EXPECT_THAT(RefusalOf(Scale("axis: 0 bias_term: true"), {{2, 3, 2, 2}, {2, 3, 2, 2}}),
              HasSubstr("bias_term with a second bottom of 4 axes is not supported; use a Bias "
                        "layer"));
}

TEST(ScaleTest, Bf16IsNearF32) {
  ExpectBf16Near(R"(type: "Scale" scale_param { bias_term: true })", {{2, 3, 5, 6}});
  ExpectBf16Near(R"(type: "Scale" scale_param { bias_term: true })", {{2, 4, 5, 6}});
  ExpectBf16Near(R"(type: "Scale" scale_param { axis: 0 })", {{2, 3, 5, 6}, {2}});
}

}  // namespace
}  // namespace trainer
