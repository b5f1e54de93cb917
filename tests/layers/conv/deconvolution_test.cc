#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Deconv(const std::string& fields) {
  return "type: \"Deconvolution\"\nconvolution_param { " + fields + " }";
}

TEST(DeconvolutionTest, HandValuesOfOverlappingKernels) {
  LayerRunner layer(Deconv("num_output: 1 kernel_h: 1 kernel_w: 3 stride_h: 1 stride_w: 2"),
                    {{1, 1, 1, 2}});
  layer.SetParam(0, {1, 10, 100});
  layer.SetParam(1, {0.5});
  EXPECT_THAT(layer.Forward({1, 2}), ElementsAre(1.5, 10.5, 102.5, 20.5, 200.5));
  layer.Backward({{1, 2, 3, 4, 5}});
  EXPECT_THAT(layer.InputGradient(), ElementsAre(321, 543));
  EXPECT_THAT(layer.ParamGradient(0), ElementsAre(7, 10, 13));
  EXPECT_THAT(layer.ParamGradient(1), ElementsAre(15));
}

TEST(DeconvolutionTest, HandValuesOfBilinearEnlargement) {
  LayerRunner layer(Deconv("num_output: 2 group: 2 kernel_size: 4 stride: 2 pad: 1 "
                           "bias_term: false weight_filler { type: \"bilinear\" }") +
                        " param { lr_mult: 0 }",
                    {{1, 2, 3, 3}});
  const std::vector<float> y = layer.Forward({0, 4, 8, 0, 4, 8, 0, 4, 8,  //
                                              1, 1, 1, 1, 1, 1, 1, 1, 1});
  EXPECT_EQ(layer.OutputShape(), Shape({1, 2, 6, 6}));
  const std::vector<float> ramp(y.begin() + 12, y.begin() + 18);
  EXPECT_THAT(ramp, ElementsAre(0, 1, 3, 5, 7, 6));
  EXPECT_EQ(y[36], 0.5625f);
  EXPECT_EQ(y[36 + 14], 1);
}

TEST(DeconvolutionTest, HandValuesOfTwoInputsThatShareTheWeight) {
  LayerRunner layer(Deconv("num_output: 2 kernel_size: 1"), {{1, 1, 1, 1}, {1, 1, 1, 1}},
                    {.outputs = 2, .learning_outputs = 1});
  layer.SetParam(0, {3, 5});
  layer.SetInput(0, {1});
  layer.SetInput(1, {10});
  layer.Forward();
  EXPECT_THAT(layer.Output(0), ElementsAre(3, 5));
  EXPECT_THAT(layer.Output(1), ElementsAre(30, 50));
  layer.Backward({{1, 2}});
  EXPECT_THAT(layer.ParamGradient(0), ElementsAre(1, 2));
  EXPECT_THAT(layer.InputGradient(1), ElementsAre(0));
}

TEST(DeconvolutionTest, HandValuesOfAFrozenWeightWithALearningBias) {
  LayerRunner layer(
      Deconv("num_output: 2 kernel_size: 1") + " param { lr_mult: 0 } param { lr_mult: 1 }",
      {{2, 1, 1, 2}});
  layer.Forward({1, 2, 3, 4});
  layer.Backward({{1, 2, 10, 20, 3, 4, 30, 40}});
  EXPECT_THAT(layer.ParamGradient(1), ElementsAre(10, 100));
}

TEST(DeconvolutionTest, GradientMatchesDifferences) {
  const std::pair<const char*, Shape> cases[] = {
      {"num_output: 2 kernel_size: 3 stride: 2 pad: 1", {2, 3, 3, 2}},
      {"num_output: 4 kernel_h: 2 kernel_w: 3 group: 2", {1, 2, 2, 3}},
      {"num_output: 2 kernel_size: 2 dilation: 2", {1, 2, 4}},
      {"num_output: 2 kernel_size: 2 stride: 2", {1, 2, 2, 1, 2}},
      {"num_output: 2 kernel_size: 2 stride: 2 axis: 2", {2, 2, 3, 2}},
      {"num_output: 3 kernel_size: 2 axis: 2", {2, 1, 2, 3, 2}}};
  for (const auto& [fields, shape] : cases) {
    SCOPED_TRACE(fields);
    LayerRunner layer(Deconv(fields), {shape});
    layer.SetInput(0, LayerRunner::SomeValues(shape.Count(), 1));
    for (int i = 0; i < 2; ++i) {
      layer.SetParam(i, LayerRunner::SomeValues(layer.ParamAt(i).count(), 2));
    }
    layer.ExpectGradient();
  }
}

TEST(DeconvolutionTest, GoldenValues) {
  ExpectGoldenFile("layers/products/deconvolution.txt", 1e-4f);
}

TEST(DeconvolutionTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(Deconv("num_output: 3 kernel_size: 3 pad: 1"), {{2, 3, 4, 5}});
}

TEST(DeconvolutionTest, RefusesPaddingThatLeavesNoOutput) {
  EXPECT_THAT(
      RefusalOf(Deconv("num_output: 1 kernel_size: 2 pad: 2"), {{1, 1, 3, 3}}),
      HasSubstr("layer 'it' (Deconvolution): spatial axis 0 of the output would have the "
                "length 4 - 2 * 2 of padding, less than 1; use less pad or a larger kernel"));
}

TEST(DeconvolutionTest, RefusesBadFields) {
  EXPECT_THAT(RefusalOf(Deconv("kernel_size: 1"), {{1, 2, 4, 4}}),
              HasSubstr("num_output is not given; give the number of filters"));
  EXPECT_THAT(
      RefusalOf(Deconv("num_output: 3 kernel_size: 1 group: 2"), {{1, 4, 4, 4}}),
      HasSubstr("group 2 does not divide the 3 outputs (num_output); choose a divisor of 3"));
  EXPECT_THAT(RefusalOf(Deconv("num_output: 2 kernel_size: 1 group: 2"), {{1, 3, 4, 4}}),
              HasSubstr("group 2 does not divide the 3 input channels; choose a divisor of 3"));
  EXPECT_THAT(RefusalOf(Deconv("num_output: 1 kernel_size: 1"), {{1, 2, 4, 5}}, {.outputs = 2}),
              HasSubstr("has 1 bottoms and 2 tops; give one top per bottom"));
}

TEST(DeconvolutionTest, Bf16IsNearF32) {
  ExpectBf16Near(
      R"(type: "Deconvolution" convolution_param { num_output: 4 kernel_size: 4 stride: 2 })",
      {{2, 3, 5, 6}});
}

}  // namespace
}  // namespace trainer
