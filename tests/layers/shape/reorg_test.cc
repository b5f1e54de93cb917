#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Reorg(const std::string& fields) {
  return "type: \"Reorg\"\nreorg_param { " + fields + " }";
}

std::vector<float> UpTo(int count) {
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

TEST(ReorgTest, HandValuesReadTheImageAsAWiderOne) {
  // Four channels of 2x2 are read as one of 4x4, and its 2x2 squares become sixteen channels.
  LayerRunner layer(Reorg("stride: 2"), {{1, 4, 2, 2}});
  EXPECT_THAT(layer.Forward(UpTo(16)),
              ElementsAre(1, 3, 9, 11, 2, 4, 10, 12, 5, 7, 13, 15, 6, 8, 14, 16));
  EXPECT_EQ(layer.OutputShape(), Shape({1, 16, 1, 1}));
  layer.Backward({UpTo(16)});
  EXPECT_THAT(layer.InputGradient(),
              ElementsAre(1, 5, 2, 6, 9, 13, 10, 14, 3, 7, 4, 8, 11, 15, 12, 16));
}

TEST(ReorgTest, HandValuesInReverse) {
  LayerRunner layer(Reorg("stride: 2 reverse: true"), {{1, 8, 1, 1}});
  EXPECT_THAT(layer.Forward(UpTo(8)), ElementsAre(1, 3, 5, 7, 2, 4, 6, 8));
  EXPECT_EQ(layer.OutputShape(), Shape({1, 2, 2, 2}));
}

TEST(ReorgTest, HandValuesOfStrideOne) {
  LayerRunner layer(Reorg("stride: 1"), {{1, 2, 1, 2}});
  EXPECT_THAT(layer.Forward({1, 2, 3, 4}), ElementsAre(1, 2, 3, 4));
  layer.Backward({{5, 6, 7, 8}});
  EXPECT_THAT(layer.InputGradient(), ElementsAre(5, 6, 7, 8));
}

TEST(ReorgTest, GradientMatchesDifferences) {
  for (const char* reverse : {"false", "true"}) {
    LayerRunner layer(Reorg(std::string("stride: 2 reverse: ") + reverse), {{2, 4, 2, 4}});
    layer.SetInput(0, LayerRunner::SomeValues(64, 1));
    layer.ExpectGradient();
  }
}

TEST(ReorgTest, GoldenValues) { ExpectGoldenFile("layers/shapes/reorg.txt"); }

TEST(ReorgTest, InPlaceEqualsNotInPlace) { ExpectInPlaceEqual(Reorg("stride: 2"), {{2, 4, 4, 2}}); }

TEST(ReorgTest, RefusesStridesThatDoNotFit) {
  EXPECT_THAT(RefusalOf(Reorg("stride: 2"), {{1, 6, 4, 4}}),
              HasSubstr("net.prototxt:4:15: layer 'it' (Reorg): stride 2 needs a multiple of 2 * 2 "
                        "channels, but the input (1, 6, 4, 4) has 6"));
  EXPECT_THAT(RefusalOf(Reorg("stride: 2"), {{1, 4, 5, 4}}),
              HasSubstr("stride 2 does not divide the 5x4 pixels of the input (1, 4, 5, 4)"));
  EXPECT_THAT(RefusalOf(Reorg("stride: 4294967295"), {{1, 4, 4, 4}}),
              HasSubstr("stride 4294967295 needs a multiple of 4294967295 * 4294967295 channels"));
  EXPECT_THAT(RefusalOf(Reorg("stride: 0"), {{1, 4, 4, 4}}),
              HasSubstr("stride is 0; it must be at least 1"));
  EXPECT_THAT(RefusalOf(Reorg("reverse: true"), {{1, 4, 4, 4}}),
              HasSubstr("stride is not given; give the side of the squares of pixels, such as 2 "
                        "in YOLO v2"));
  EXPECT_THAT(RefusalOf(Reorg("stride: 2"), {{4, 4}}),
              HasSubstr("bottom 'x0' has shape (4, 4), but this layer needs images (N, C, H,"));
}

TEST(ReorgTest, Bf16IsNearF32) { ExpectBf16Near(Reorg("stride: 2"), {{2, 4, 4, 6}}); }

}  // namespace
}  // namespace trainer
