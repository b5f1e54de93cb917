#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Crop(const std::string& fields = "") {
  return "type: \"Crop\"\ncrop_param { " + fields + " }";
}

TEST(CropTest, HandValuesOfAnImageInPlainOrder) {
  LayerRunner layer(Crop("offset: 1"), {{1, 2, 2, 3}, {1, 1, 1, 2}});
  EXPECT_THAT(layer.Forward({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}), ElementsAre(5, 6, 11, 12));
  EXPECT_EQ(layer.OutputShape(), Shape({1, 2, 1, 2}));
  layer.Backward({{1, 2, 3, 4}});
  EXPECT_THAT(layer.InputGradient(), ElementsAre(0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 3, 4));
  EXPECT_THAT(layer.InputGradient(1), ElementsAre(0, 0));
}

TEST(CropTest, HandValuesOfOneOffsetPerAxis) {
  LayerRunner layer(Crop("axis: 0 offset: 1 offset: 0"), {{3, 2}, {2, 1}});
  EXPECT_THAT(layer.Forward({1, 2, 3, 4, 5, 6}), ElementsAre(3, 5));
}

TEST(CropTest, HandValuesOfAnInputThatHasTheSizeAlready) {
  LayerRunner layer(Crop(), {{1, 2, 1, 2}, {5, 7, 1, 2}});
  EXPECT_THAT(layer.Forward({1, 2, 3, 4}), ElementsAre(1, 2, 3, 4));
  layer.Backward({{5, 6, 7, 8}});
  EXPECT_THAT(layer.InputGradient(), ElementsAre(5, 6, 7, 8));
}

TEST(CropTest, GradientMatchesDifferences) {
  LayerRunner layer(Crop("axis: 1 offset: 1 offset: 0 offset: 2"), {{2, 3, 2, 4}, {1, 2, 2, 2}});
  layer.SetInput(0, LayerRunner::SomeValues(48, 1));
  layer.ExpectGradient();
}

TEST(CropTest, GoldenValues) { ExpectGoldenFile("layers/shapes/crop.txt"); }

TEST(CropTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(Crop(), {{2, 3, 4, 5}, {2, 3, 2, 2}});
}

TEST(CropTest, RefusesAPartThatDoesNotFit) {
  EXPECT_THAT(RefusalOf(Crop("offset: 0 offset: 2"), {{1, 1, 4, 4}, {1, 1, 3, 3}}),
              HasSubstr("net.prototxt:4:14: layer 'it' (Crop): on axis 3, 3 elements from offset "
                        "2 do not fit into the 4 of bottom 'x0'"));
}

TEST(CropTest, RefusesBadFieldsAndShapes) {
  EXPECT_THAT(RefusalOf(Crop("offset: 0 offset: 0 offset: 0"), {{1, 1, 4, 4}, {1, 1, 3, 3}}),
              HasSubstr("offset is given 3 times for 2 cropped axes; give one, or one per axis"));
  EXPECT_THAT(RefusalOf(Crop("axis: 4"), {{1, 1, 4, 4}, {1, 1, 3, 3}}),
              HasSubstr("axis is 4, but the input (1, 1, 4, 4) has 4 axes"));
  EXPECT_THAT(RefusalOf(Crop(), {{1, 1, 4, 4}, {3, 3}}),
              HasSubstr("bottom 'x1' has shape (3, 3), but bottom 'x0' has (1, 1, 4, 4); they must "
                        "have the same number of"));
}

TEST(CropTest, Bf16IsNearF32) {
  ExpectBf16Near(R"(type: "Crop" crop_param { offset: 1 })", {{2, 3, 5, 6}, {2, 3, 3, 4}}, {}, {});
}

}  // namespace
}  // namespace trainer
