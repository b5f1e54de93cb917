#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Roi(const std::string& fields) {
  return "type: \"ROIPooling\"\nroi_pooling_param { " + fields + " }";
}

TEST(RoiPoolingTest, HandValuesOfARegionAndItsCells) {
  LayerRunner layer(Roi("pooled_h: 1 pooled_w: 2"), {{1, 1, 3, 4}, {2, 5}});
  layer.SetInput(1, {0, 1, 0, 3, 1, 0, 0, 2, 0, 2});
  // Columns 1 to 3 make two cells: 1 and 2, then 2 and 3. A one-pixel region fills both cells.
  EXPECT_THAT(layer.Forward({1, 2, 9, 4, 5, 6, 7, 8, 3, 3, 3, 3}), ElementsAre(9, 9, 3, 3));
  layer.Backward({{1, 2, 4, 8}});
  EXPECT_THAT(layer.InputGradient(), ElementsAre(0, 0, 3, 0, 0, 0, 0, 0, 12, 0, 0, 0));
}

TEST(RoiPoolingTest, HandValuesOfCornersThatAreRoundedHalvesAwayFromZero) {
  LayerRunner layer(Roi("pooled_h: 1 pooled_w: 1 spatial_scale: 0.5"), {{1, 1, 1, 5}, {3, 5}});
  // 3 / 2 rounds to 2 and 5 / 2 to 3; -1 / 2 rounds to -1, clipped to 0; 2 / 2 and 2.75 / 2 give 1.
  layer.SetInput(1, {0, 3, 0, 5, 0, 0, -1, 0, 2, 0, 0, 2, 0, 2.75, 0});
  EXPECT_THAT(layer.Forward({5, 4, 1, 2, 9}), ElementsAre(2, 5, 4));
}

TEST(RoiPoolingTest, HandValuesOfAnEmptyCellAreZeroWithoutGradient) {
  LayerRunner layer(Roi("pooled_h: 1 pooled_w: 1"), {{2, 1, 1, 2}, {2, 5}});
  layer.SetInput(1, {1, 7, 7, 9, 9, 1, 1, 0, 1, 0});
  EXPECT_THAT(layer.Forward({-1, -2, -3, -4}), ElementsAre(0, -4));
  layer.Backward({{5, 6}});
  EXPECT_THAT(layer.InputGradient(), ElementsAre(0, 0, 0, 6));
}

TEST(RoiPoolingTest, HandValuesOfARegionFarOutsideTheRangeOfPixels) {
  LayerRunner layer(Roi("pooled_h: 1 pooled_w: 1"), {{1, 1, 1, 2}, {2, 5}});
  layer.SetInput(1, {0, -3e38f, -3e38f, 3e38f, 3e38f, 0, 3e38f, 0, 3e38f, 0});
  EXPECT_THAT(layer.Forward({-1, -2}), ElementsAre(-1, 0));
}

TEST(RoiPoolingTest, RegionsMayHaveTwoMoreAxes) {
  LayerRunner layer(Roi("pooled_h: 1 pooled_w: 1"), {{1, 2, 1, 2}, {1, 5, 1, 1}});
  layer.SetInput(1, {0, 1, 0, 1, 0});
  EXPECT_THAT(layer.Forward({1, 2, 3, 4}), ElementsAre(2, 4));
  EXPECT_EQ(layer.OutputShape(), Shape({1, 2, 1, 1}));
}

TEST(RoiPoolingTest, GradientMatchesDifferences) {
  LayerRunner layer(Roi("pooled_h: 2 pooled_w: 3"), {{2, 3, 4, 5}, {4, 5}});
  std::vector<float> x(120);  // all different, so that no step changes a maximum
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 120) / 20;
  layer.SetInput(0, x);
  layer.SetInput(1, {1, 0, 0, 4, 3, 0, 1, 1, 2, 2, 1, 3, -2, 9, 1, 0, 0, 0, 4, 3});
  layer.ExpectGradient();
}

TEST(RoiPoolingTest, GradientIsTheSameForManyChannelsWhateverTheThreads) {
  const Shape in = {1, 130, 3, 3};
  LayerRunner layer(Roi("pooled_h: 3 pooled_w: 3"), {in, {3, 5}});
  layer.SetInput(0, LayerRunner::SomeValues(in.Count(), 1));
  layer.SetInput(1, {0, 0, 0, 2, 2, 0, 0, 0, 2, 2, 0, 0, 0, 2, 2});
  layer.Forward();
  std::vector<float> dy = LayerRunner::SomeValues(3 * in.Count(), 2);
  for (float& value : dy) value /= 3;  // makes the sums depend on the order of the additions
  layer.Backward({dy});
  const std::vector<float> dx = layer.InputGradient();  // each cell covers one pixel
  const size_t size = dx.size();
  for (size_t i = 0; i < size; ++i) EXPECT_EQ(dx[i], dy[i] + dy[i + size] + dy[i + 2 * size]);
}

TEST(RoiPoolingTest, GoldenValues) { ExpectGoldenFile("layers/shapes/roi_pooling.txt"); }

TEST(RoiPoolingTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(Roi("pooled_h: 4 pooled_w: 5"), {{2, 3, 4, 5}, {2, 5}},
                     {{}, {0, 0, 0, 4, 3, 1, 1, 1, 3, 3}});
}

TEST(RoiPoolingTest, RefusesRegionsOfNoImage) {
  LayerRunner layer(Roi("pooled_h: 1 pooled_w: 1"), {{2, 1, 2, 2}, {2, 5}});
  const auto refusal = [&](const std::vector<float>& regions, const std::string& text) {
    layer.SetInput(1, regions);
    EXPECT_THAT([&] { layer.Forward(); }, testing::ThrowsMessage<Error>(HasSubstr(text)));
  };
  refusal({0, 0, 0, 1, 1, 2, 0, 0, 1, 1},
          "layer 'it' (ROIPooling): bottom 'x1' has 2 as the image of region 1; it must be a "
          "whole number, and the batch has 2 images, 0 to 1");
  refusal({-1, 0, 0, 1, 1, 0, 0, 0, 1, 1}, "has -1 as the image of region 0");
  refusal({NAN, 0, 0, 1, 1, 0, 0, 0, 1, 1}, "has nan as the image of region 0");
  refusal({0, 0, 0, 1, 1, 0, 0, NAN, 1, 1},
          "nan as the y1 of region 1; a coordinate must be a finite");
}

TEST(RoiPoolingTest, RefusesBadFieldsAndShapes) {
  const std::vector<Shape> shapes = {{1, 1, 4, 4}, {2, 5}};
  EXPECT_THAT(RefusalOf(Roi("pooled_w: 2"), shapes),
              HasSubstr("pooled_h is 0; it must be at least 1 and below 2^31, e.g. 7"));
  EXPECT_THAT(RefusalOf(Roi("pooled_h: 2"), shapes), HasSubstr("pooled_w is 0"));
  EXPECT_THAT(RefusalOf(Roi("pooled_h: 2 pooled_w: 2 spatial_scale: 0"), shapes),
              HasSubstr("net.prototxt:4:45: layer 'it' (ROIPooling): spatial_scale is 0; it must "
                        "be above 0"));
  EXPECT_THAT(RefusalOf(Roi("pooled_h: 2 pooled_w: 2"), {{1, 1, 4, 4}, {2, 4}}),
              HasSubstr("bottom 'x1' has shape (2, 4); it must be (R, 5): a row (image, x1, y1, "
                        "x2, y2) per region"));
  EXPECT_THAT(RefusalOf(Roi("pooled_h: 2 pooled_w: 2"), {{1, 1, 4, 4}, {5}}),
              HasSubstr("bottom 'x1' has shape (5)"));
  EXPECT_THAT(RefusalOf(Roi("pooled_h: 2 pooled_w: 2"), {{4, 4}, {1, 5}}),
              HasSubstr("bottom 'x0' has shape (4, 4), but this layer needs images (N, C, H,"));
}

}  // namespace
}  // namespace trainer
