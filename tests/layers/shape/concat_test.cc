#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"
#include "support/test_device.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Concat(const std::string& fields) {
  return "type: \"Concat\"\nconcat_param { " + fields + " }";
}

TEST(ConcatTest, HandValuesOfChannels) {
  LayerRunner layer(Concat("axis: 1"), {{1, 1, 1, 2}, {1, 2, 1, 2}});
  layer.SetInput(0, {1, 2});
  layer.SetInput(1, {3, 4, 5, 6});
  layer.Forward();
  EXPECT_THAT(layer.Output(), ElementsAre(1, 2, 3, 4, 5, 6));
  layer.Backward({{10, 20, 30, 40, 50, 60}});
  EXPECT_THAT(layer.InputGradient(0), ElementsAre(10, 20));
  EXPECT_THAT(layer.InputGradient(1), ElementsAre(30, 40, 50, 60));
}

// An output of this size bypasses the caches if its blocks are whole cache lines.
TEST(ConcatTest, HandValuesOfLargeBlobs) {
  TRAINER_CPU_ONLY("what it writes past its caches");
  for (const int64_t width : {32, 33}) {
    const int64_t rows = 50000;
    LayerRunner layer(Concat("axis: 1"), {{rows, width}, {rows, 48}});
    const auto a = LayerRunner::SomeValues(rows * width, 1);
    const auto b = LayerRunner::SomeValues(rows * 48, 2);
    layer.SetInput(0, a);
    layer.SetInput(1, b);
    layer.Forward();
    const std::vector<float> y = layer.Output();
    for (int64_t i = 0; i < std::ssize(y); ++i) {
      const int64_t row = i / (width + 48), at = i % (width + 48);
      ASSERT_EQ(y[i], at < width ? a[row * width + at] : b[row * 48 + at - width]) << i;
    }
    layer.Backward({y});
    EXPECT_EQ(layer.InputGradient(0), a);
    EXPECT_EQ(layer.InputGradient(1), b);
  }
}

TEST(ConcatTest, GradientMatchesDifferences) {
  LayerRunner layer(Concat("axis: 2"), {{2, 3, 1, 2}, {2, 3, 2, 2}});
  layer.SetInput(0, LayerRunner::SomeValues(12, 1));
  layer.SetInput(1, LayerRunner::SomeValues(24, 2));
  layer.ExpectGradient({.inputs = {0, 1}});
}

TEST(ConcatTest, GoldenValues) { ExpectGoldenFile("layers/shapes/concat.txt"); }

TEST(ConcatTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(Concat("axis: 1"), {{2, 3, 4, 5}, {2, 2, 4, 5}});
}

TEST(ConcatTest, RefusesInputsThatDoNotFit) {
  EXPECT_THAT(RefusalOf(Concat("axis: 1"), {{2, 3}, {3, 3}}),
              HasSubstr("bottom 'x1' has shape (3, 3), but bottom 'x0' has (2, 3); to be "
                        "concatenated along axis 1 they must be equal in all other"));
  EXPECT_THAT(RefusalOf(Concat("axis: 1"), {{2, 3}, {2, 3, 1}}), HasSubstr("has shape (2, 3, 1)"));
}

TEST(ConcatTest, RefusesBadAxes) {
  EXPECT_THAT(RefusalOf(Concat("axis: 2"), {{2, 3}}),
              HasSubstr("net.prototxt:4:16: layer 'it' (Concat): axis is 2, but the input (2, 3) "
                        "has 2 axes"));
  EXPECT_THAT(RefusalOf(Concat("axis: 1 concat_dim: 1"), {{2, 3}}),
              HasSubstr("axis and concat_dim are both given; keep axis"));
}

TEST(ConcatTest, Bf16IsNearF32) {
  ExpectBf16Near(R"(type: "Concat")", {{2, 3, 5, 6}, {2, 4, 5, 6}});
}

}  // namespace
}  // namespace trainer
