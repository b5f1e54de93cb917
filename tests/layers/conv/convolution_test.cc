#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Conv(const std::string& fields) {
  return "type: \"Convolution\"\nconvolution_param { " + fields + " }";
}

TEST(ConvolutionTest, HandValuesOfASum) {
  LayerRunner conv(Conv("num_output: 1 kernel_size: 2"), {{1, 1, 2, 3}});
  conv.SetParam(0, {1, 10, 100, 1000});
  conv.SetParam(1, {0.5});
  EXPECT_THAT(conv.Forward({1, 2, 3, 4, 5, 6}), ElementsAre(5421.5, 6532.5));
}

TEST(ConvolutionTest, HandValuesOfTwoInputsThatShareTheWeight) {
  LayerRunner conv(Conv("num_output: 1 kernel_size: 1 bias_term: false"),
                   {{1, 2, 1, 1}, {1, 2, 1, 1}}, {.outputs = 2});
  conv.SetParam(0, {3, 5});
  conv.SetInput(0, {1, 2});
  conv.SetInput(1, {10, 20});
  conv.Forward();
  EXPECT_THAT(conv.Output(0), ElementsAre(13));
  EXPECT_THAT(conv.Output(1), ElementsAre(130));
  conv.Backward({{1}, {2}});
  EXPECT_THAT(conv.ParamGradient(0), ElementsAre(21, 42));
  EXPECT_THAT(conv.InputGradient(1), ElementsAre(6, 10));
}

TEST(ConvolutionTest, HandValuesOfAFrozenWeightWithALearningBias) {
  LayerRunner conv(
      Conv("num_output: 2 kernel_size: 1") + " param { lr_mult: 0 } param { lr_mult: 1 }",
      {{2, 1, 1, 2}});
  conv.Forward({1, 2, 3, 4});
  conv.Backward({{1, 2, 10, 20, 3, 4, 30, 40}});
  EXPECT_THAT(conv.ParamGradient(1), ElementsAre(10, 100));
}

TEST(ConvolutionTest, ALearningBiasOnAnotherAxis) {
  LayerRunner conv(
      Conv("num_output: 2 kernel_size: 1 axis: 2") + " param { lr_mult: 0 } param { lr_mult: 1 }",
      {{1, 2, 1, 2}});
  conv.Forward({1, 2, 3, 4});
  conv.Backward({{1, 2, 10, 20, 3, 4, 30, 40}});
  EXPECT_THAT(conv.ParamGradient(1), ElementsAre(10, 100));
}

TEST(ConvolutionTest, GradientMatchesDifferences) {
  const std::pair<const char*, Shape> cases[] = {
      {"num_output: 4 kernel_size: 3 stride: 2 pad: 1", {2, 3, 6, 5}},
      {"num_output: 4 kernel_h: 2 kernel_w: 3 stride_h: 1 stride_w: 2 group: 2", {2, 4, 4, 5}},
      {"num_output: 2 kernel_size: 3 dilation: 2", {1, 2, 6, 7}},
      {"num_output: 2 kernel_size: 3 pad: 1", {2, 3, 7}},
      {"num_output: 2 kernel_size: 2 kernel_size: 1 kernel_size: 3", {1, 2, 3, 3, 4}},
      {"num_output: 2 kernel_size: 3 pad: 1 axis: 2", {2, 2, 3, 4}},
      {"num_output: 2 kernel_size: 2 axis: 2", {2, 1, 2, 3, 3}}};
  for (const auto& [fields, shape] : cases) {
    SCOPED_TRACE(fields);
    LayerRunner conv(Conv(fields), {shape});
    conv.SetInput(0, LayerRunner::SomeValues(shape.Count(), 1));
    for (int i = 0; i < 2; ++i) {
      conv.SetParam(i, LayerRunner::SomeValues(conv.ParamAt(i).count(), 2));
    }
    conv.ExpectGradient();
  }
}

TEST(ConvolutionTest, GoldenValuesOfOtherAxes) {
  ExpectGoldenFile("layers/products/convolution_axis.txt", 1e-4f);
}

TEST(ConvolutionTest, GoldenValues) {
  for (const GoldenCase& golden : ReadGolden("layers/products/convolution.txt")) {
    ExpectGolden(golden, {.bound = 1e-4f});
  }
}

TEST(ConvolutionTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(Conv("num_output: 3 kernel_size: 3 pad: 1"), {{2, 3, 4, 5}});
}

TEST(ConvolutionTest, RefusesAKernelThatDoesNotFit) {
  EXPECT_THAT(RefusalOf(Conv("num_output: 4 kernel_size: 5 pad: 1"), {{1, 1, 2, 9}}),
              HasSubstr("net.prototxt:4:35: layer 'it' (Convolution): a kernel of 5x5 covers 5 "
                        "positions, but spatial axis 0 of the input has 2 + 2 * 1 of padding; use "
                        "a smaller kernel or more pad"));
}

TEST(ConvolutionTest, RefusesZeros) {
  const Shape in{1, 2, 4, 4};
  EXPECT_THAT(RefusalOf(Conv("num_output: 4 kernel_size: 3 stride: 0"), {in}),
              HasSubstr("net.prototxt:4:50: layer 'it' (Convolution): stride is 0; it must be at "
                        "least 1 and below 2^31"));
  EXPECT_THAT(RefusalOf(Conv("num_output: 4 kernel_size: 0"), {in}),
              HasSubstr("kernel_size is 0; it must be at least 1"));
  EXPECT_THAT(RefusalOf(Conv("num_output: 4 kernel_size: 2 dilation: 0"), {in}),
              HasSubstr("dilation is 0; it must be at least 1"));
  EXPECT_THAT(RefusalOf(Conv("num_output: 0 kernel_size: 1"), {in}),
              HasSubstr("net.prototxt:4:21: layer 'it' (Convolution): num_output is 0; give the "
                        "number of filters, at least 1"));
  EXPECT_THAT(RefusalOf(Conv("num_output: 1 kernel_size: 1 group: 0"), {in}),
              HasSubstr("group is 0; it must be at least 1"));
}

TEST(ConvolutionTest, RefusesMissingFields) {
  EXPECT_THAT(RefusalOf(Conv("kernel_size: 1"), {{1, 2, 4, 4}}),
              HasSubstr("num_output is not given; give the number of filters"));
  EXPECT_THAT(RefusalOf(Conv("num_output: 1"), {{1, 2, 4, 4}}),
              HasSubstr("kernel_size is not given; write kernel_size, or kernel_h and kernel_w"));
}

TEST(ConvolutionTest, RefusesAGroupThatDoesNotDivide) {
  EXPECT_THAT(RefusalOf(Conv("num_output: 4 kernel_size: 1 group: 2"), {{1, 3, 4, 4}}),
              HasSubstr("group 2 does not divide the 3 input channels; choose a divisor of 3"));
  EXPECT_THAT(
      RefusalOf(Conv("num_output: 3 kernel_size: 1 group: 2"), {{1, 4, 4, 4}}),
      HasSubstr("group 2 does not divide the 3 outputs (num_output); choose a divisor of 3"));
}

TEST(ConvolutionTest, RefusesTwoFormsOfOneField) {
  const Shape in{1, 2, 4, 4};
  EXPECT_THAT(RefusalOf(Conv("num_output: 1 kernel_size: 2 kernel_h: 2 kernel_w: 2"), {in}),
              HasSubstr("kernel_h and kernel_size are both given; keep one of them"));
  EXPECT_THAT(RefusalOf(Conv("num_output: 1 kernel_size: 2 stride_h: 2"), {in}),
              HasSubstr("stride_h is given without stride_w; give both"));
  EXPECT_THAT(RefusalOf(Conv("num_output: 1 kernel_h: 2 kernel_w: 2"), {{1, 2, 4}}),
              HasSubstr("kernel_h is for images (2 spatial axes), but this input has 1; write "
                        "kernel_size once per axis"));
  EXPECT_THAT(
      RefusalOf(Conv("num_output: 1 kernel_size: 2 kernel_size: 2 kernel_size: 2"), {in}),
      HasSubstr("kernel_size is given 3 times for 2 spatial axes; give one, or one per axis"));
}

TEST(ConvolutionTest, RefusesInputsOfAnotherRank) {
  EXPECT_THAT(RefusalOf(Conv("num_output: 1 kernel_size: 1"), {{4}}),
              HasSubstr("axis is 1, but the input (4) has 1 axis"));
  EXPECT_THAT(RefusalOf(Conv("num_output: 1 kernel_size: 1 axis: 4"), {{1, 2, 4, 5}}),
              HasSubstr("axis is 4, but the input (1, 2, 4, 5) has 4 axes"));
  EXPECT_THAT(
      RefusalOf(Conv("num_output: 1 kernel_size: 1"), {{1, 2, 4, 5}, {1, 2, 5, 4}}, {.outputs = 2}),
      HasSubstr(
          "bottom 'x1' has shape (1, 2, 5, 4), but bottom 'x0' has (1, 2, 4, 5); they must be"));
  EXPECT_THAT(RefusalOf(Conv("num_output: 1 kernel_size: 1"), {{1, 2, 4, 5}}, {.outputs = 2}),
              HasSubstr("has 1 bottoms and 2 tops; give one top per bottom"));
}

TEST(ConvolutionTest, Bf16IsNearF32) {
  ExpectBf16Near(R"(type: "Convolution" convolution_param { num_output: 4 kernel_size: 3 pad: 1 })",
                 {{2, 3, 5, 6}});
  ExpectBf16Near(
      R"(type: "Convolution" convolution_param { num_output: 4 kernel_size: 3 group: 2 stride: 2 })",
      {{2, 4, 7, 7}});
  ExpectBf16Near(R"(type: "Convolution" convolution_param { num_output: 4 kernel_size: 3 })",
                 {{2, 3, 8}});
}

}  // namespace
}  // namespace trainer
