#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ConvolutionDepthwiseTest : public testing::TestWithParam<const char*> {
 protected:
  static std::string Conv(const std::string& fields) { return Conv(GetParam(), fields); }
  static std::string Conv(const std::string& type, const std::string& fields) {
    return "type: \"" + type + "\"\nconvolution_param { " + fields + " }";
  }
};

INSTANTIATE_TEST_SUITE_P(Of, ConvolutionDepthwiseTest,
                         testing::Values("ConvolutionDepthwise", "DepthwiseConvolution"),
                         [](const auto& type) { return type.param; });

TEST_P(ConvolutionDepthwiseTest, HandValuesOfOneFilterPerChannel) {
  LayerRunner conv(Conv("kernel_size: 2"), {{1, 2, 2, 2}});
  EXPECT_EQ(conv.ParamAt(0).shape, Shape({2, 1, 2, 2}));
  conv.SetParam(0, {1, 10, 100, 1000, 2, 0, 0, 0});
  conv.SetParam(1, {0.5, 7});
  EXPECT_THAT(conv.Forward({1, 2, 3, 4, 5, 6, 7, 8}), ElementsAre(4321.5, 17));
}

TEST_P(ConvolutionDepthwiseTest, ImagesEqualThoseOfAConvolutionInGroups) {
  const std::string fields = "kernel_size: 3 pad: 1 stride: 2";
  LayerRunner depthwise(Conv(fields), {{2, 16, 7, 6}});
  LayerRunner groups(Conv("Convolution", fields + " num_output: 16 group: 16"), {{2, 16, 7, 6}});
  const std::vector<float> x = LayerRunner::SomeValues(2 * 16 * 7 * 6, 1);
  for (LayerRunner* conv : {&depthwise, &groups}) {
    conv->SetParam(0, LayerRunner::SomeValues(16 * 9, 2));
    conv->SetParam(1, LayerRunner::SomeValues(16, 3));
    conv->Forward(x);
    conv->Backward({LayerRunner::SomeValues(2 * 16 * 4 * 3, 4)});
  }
  EXPECT_EQ(depthwise.Output(), groups.Output());
  EXPECT_EQ(depthwise.InputGradient(), groups.InputGradient());
  EXPECT_EQ(depthwise.ParamGradient(0), groups.ParamGradient(0));
  EXPECT_EQ(depthwise.layer().kernel(), groups.layer().kernel());
  EXPECT_EQ(depthwise.layer().Macs(), groups.layer().Macs());
}

TEST_P(ConvolutionDepthwiseTest, GradientMatchesDifferences) {
  LayerRunner conv(Conv("kernel_size: 3 pad: 1"), {{1, 3, 4, 5}});
  conv.SetInput(0, LayerRunner::SomeValues(60, 1));
  for (int i = 0; i < 2; ++i) {
    conv.SetParam(i, LayerRunner::SomeValues(conv.ParamAt(i).count(), 2));
  }
  conv.ExpectGradient();
}

TEST_P(ConvolutionDepthwiseTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(Conv("kernel_size: 3 pad: 1 weight_filler { type: \"xavier\" }"),
                     {{2, 3, 4, 5}});
}

TEST_P(ConvolutionDepthwiseTest, RefusesOtherCounts) {
  EXPECT_THAT(
      RefusalOf(Conv("num_output: 6 kernel_size: 1"), {{1, 3, 4, 4}}),
      HasSubstr(std::string("net.prototxt:4:21: layer 'it' (") + GetParam() +
                "): num_output is 6, but a depthwise convolution has one filter per input "
                "channel, and (1, 3, 4, 4) has 3: remove num_output, or use type Convolution"));
  EXPECT_THAT(RefusalOf(Conv("group: 2 kernel_size: 1"), {{1, 4, 4, 4}}),
              HasSubstr("group is 2, but a depthwise convolution has one filter per input channel, "
                        "and (1, 4, 4, 4) has 4: remove group, or use type"));
  EXPECT_THAT(RefusalOf(Conv("kernel_size: 5"), {{1, 4, 4, 4}}),
              HasSubstr("a kernel of 5x5 covers 5"));
}

TEST_P(ConvolutionDepthwiseTest, Bf16IsNearF32) {
  ExpectBf16Near(Conv("kernel_size: 3"), {{2, 16, 5, 6}});
}

TEST(ConvolutionDepthwiseFilesTest, GoldenValues) {
  ExpectGoldenFile("layers/products/convolution_depthwise.txt");
  ExpectGoldenFile("layers/products/depthwise_convolution.txt");
}

}  // namespace
}  // namespace trainer
