#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Im2col(const std::string& fields) {
  return "type: \"Im2col\"\nconvolution_param { " + fields + " }";
}

TEST(Im2colTest, HandValuesOfOverlappingWindows) {
  LayerRunner layer(Im2col("kernel_h: 1 kernel_w: 2 stride_h: 1 stride_w: 1 pad_h: 0 pad_w: 1"),
                    {{1, 2, 1, 2}});
  EXPECT_THAT(layer.Forward({1, 2, 3, 4}), ElementsAre(0, 1, 2, 1, 2, 0, 0, 3, 4, 3, 4, 0));
  EXPECT_EQ(layer.OutputShape(), Shape({1, 4, 1, 3}));
  layer.Backward({{1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60}});
  EXPECT_THAT(layer.InputGradient(), ElementsAre(6, 8, 60, 80));
}

TEST(Im2colTest, GradientMatchesDifferences) {
  const std::pair<const char*, Shape> cases[] = {
      {"kernel_size: 3 stride: 2 pad: 1", {2, 2, 4, 5}},
      {"kernel_size: 2 dilation: 2", {1, 2, 5}},
      {"kernel_size: 2 pad: 1 stride: 3", {1, 2, 3, 2, 2}}};
  for (const auto& [fields, shape] : cases) {
    SCOPED_TRACE(fields);
    LayerRunner layer(Im2col(fields), {shape});
    layer.SetInput(0, LayerRunner::SomeValues(shape.Count(), 1));
    layer.ExpectGradient();
  }
}

TEST(Im2colTest, GoldenValues) { ExpectGoldenFile("layers/shapes/im2col.txt"); }

TEST(Im2colTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(Im2col("kernel_size: 1"), {{2, 3, 4, 5}});
}

TEST(Im2colTest, RefusesBadFields) {
  EXPECT_THAT(RefusalOf(Im2col("kernel_size: 5"), {{1, 1, 2, 9}}),
              HasSubstr("net.prototxt:4:21: layer 'it' (Im2col): a kernel of 5x5 covers 5 "
                        "positions, but spatial axis 0 of the input has 2 + 2 * 0 of padding"));
  EXPECT_THAT(RefusalOf(Im2col(""), {{1, 1, 2, 9}}), HasSubstr("kernel_size is not given"));
  EXPECT_THAT(RefusalOf(Im2col("kernel_size: 1"), {{4}}),
              HasSubstr("axis is 1, but the input (4) has 1 axis"));
}

TEST(Im2colTest, Bf16IsNearF32) {
  ExpectBf16Near(R"(type: "Im2col" convolution_param { kernel_size: 3 pad: 1 })", {{2, 3, 5, 6}});
}

}  // namespace
}  // namespace trainer
