#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string PsRoi(const std::string& fields) {
  return "type: \"PSROIPooling\"\npsroi_pooling_param { " + fields + " }";
}

TEST(PsRoiPoolingTest, HandValuesOfCellsThatReadTheirOwnChannels) {
  LayerRunner layer(PsRoi("spatial_scale: 1 output_dim: 1 group_size: 2"), {{1, 4, 2, 2}, {1, 5}});
  layer.SetInput(1, {0, 0, 0, 1, 1});
  EXPECT_THAT(layer.Forward({1, 2, 3, 4, 10, 20, 30, 40, 5, 6, 7, 8, 50, 60, 70, 80}),
              ElementsAre(1, 20, 7, 80));
  layer.Backward({{1, 2, 3, 4}});
  EXPECT_THAT(layer.InputGradient(), ElementsAre(1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 3, 0, 0, 0, 0, 4));
}

TEST(PsRoiPoolingTest, HandValuesOfTheMeanAndItsGradient) {
  LayerRunner layer(PsRoi("spatial_scale: 0.5 output_dim: 2 group_size: 1"),
                    {{2, 2, 1, 4}, {1, 5}});
  // The region from 1 / 2 to (4 + 1) / 2 = 2.5 covers pixels 0 to 2.
  layer.SetInput(1, {1, 1.25, 0, 4.25, 0});
  EXPECT_THAT(layer.Forward({0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 6, 100, 3, 4, 8, 100}),
              ElementsAre(3, 5));
  layer.Backward({{3, 6}});
  EXPECT_THAT(layer.InputGradient(), ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 2, 2, 2, 0));
}

TEST(PsRoiPoolingTest, HandValuesOfAnEmptyCellAreZeroWithoutGradient) {
  LayerRunner layer(PsRoi("spatial_scale: 1 output_dim: 1 group_size: 1"), {{1, 1, 1, 2}, {2, 5}});
  layer.SetInput(1, {0, 5, 5, 6, 6, 0, -3e38f, -3e38f, 3e38f, 3e38f});
  EXPECT_THAT(layer.Forward({2, 4}), ElementsAre(0, 3));
  layer.Backward({{8, 2}});
  EXPECT_THAT(layer.InputGradient(), ElementsAre(1, 1));
}

TEST(PsRoiPoolingTest, GradientMatchesDifferences) {
  LayerRunner layer(PsRoi("spatial_scale: 0.5 output_dim: 2 group_size: 2"),
                    {{2, 8, 3, 4}, {3, 5}});
  layer.SetInput(0, LayerRunner::SomeValues(192, 1));
  layer.SetInput(1, {0, 0, 0, 7, 5, 1, 2, 1, 5, 4, 1, -3, 2, 4, 20});
  layer.ExpectGradient();
}

TEST(PsRoiPoolingTest, GradientIsTheSameForManyChannelsWhateverTheThreads) {
  const Shape in = {1, 160, 2, 2};
  LayerRunner layer(PsRoi("spatial_scale: 1 output_dim: 40 group_size: 2"), {in, {3, 5}});
  layer.SetInput(0, LayerRunner::SomeValues(in.Count(), 1));
  layer.SetInput(1, {0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1});
  layer.Forward();
  std::vector<float> dy = LayerRunner::SomeValues(3 * 160, 2);
  for (float& value : dy) value /= 3;  // makes the sums depend on the order of the additions
  layer.Backward({dy});
  const std::vector<float> dx = layer.InputGradient();  // each cell covers one pixel
  for (size_t i = 0; i < 160; ++i) {
    for (size_t pixel = 0; pixel < 4; ++pixel) {
      const float sum = dy[i] + dy[i + 160] + dy[i + 320];
      EXPECT_EQ(dx[4 * i + pixel], i % 4 == pixel ? sum : 0);
    }
  }
}

TEST(PsRoiPoolingTest, GoldenValues) { ExpectGoldenFile("layers/shapes/ps_roi_pooling.txt"); }

TEST(PsRoiPoolingTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(PsRoi("spatial_scale: 1 output_dim: 3 group_size: 1"), {{2, 3, 1, 1}, {2, 5}},
                     {{}, {0, 0, 0, 0, 0, 1, 0, 0, 0, 0}});
}

TEST(PsRoiPoolingTest, RefusesRegionsOfNoImage) {
  LayerRunner layer(PsRoi("spatial_scale: 1 output_dim: 1 group_size: 1"), {{1, 1, 2, 2}, {1, 5}});
  layer.SetInput(1, {1, 0, 0, 1, 1});
  EXPECT_THAT([&] { layer.Forward(); },
              testing::ThrowsMessage<Error>(HasSubstr(
                  "layer 'it' (PSROIPooling): bottom 'x1' has 1 as the image of region 0; it must "
                  "be a whole number, and the batch has 1 image, 0")));
}

TEST(PsRoiPoolingTest, RefusesBadFieldsAndShapes) {
  const std::vector<Shape> shapes = {{1, 8, 4, 4}, {2, 5}};
  EXPECT_THAT(RefusalOf(PsRoi("output_dim: 2 group_size: 2"), shapes),
              HasSubstr("spatial_scale is not given; it is the pixels of the input per unit"));
  EXPECT_THAT(RefusalOf(PsRoi("spatial_scale: 1 group_size: 2"), shapes),
              HasSubstr("output_dim is not given; it is the number of output channels"));
  EXPECT_THAT(RefusalOf(PsRoi("spatial_scale: 1 output_dim: 2"), shapes),
              HasSubstr("group_size is not given; it is the number of cells per side"));
  EXPECT_THAT(RefusalOf(PsRoi("spatial_scale: -1 output_dim: 2 group_size: 2"), shapes),
              HasSubstr("spatial_scale is -1; it must be above 0"));
  EXPECT_THAT(RefusalOf(PsRoi("spatial_scale: 1 output_dim: 0 group_size: 2"), shapes),
              HasSubstr("output_dim is 0; it must be at least 1"));
  EXPECT_THAT(RefusalOf(PsRoi("spatial_scale: 1 output_dim: 2 group_size: 70000"), shapes),
              HasSubstr("group_size is 70000; at most 65536 cells per side are"));
  EXPECT_THAT(RefusalOf(PsRoi("spatial_scale: 1 output_dim: 3 group_size: 2"), shapes),
              HasSubstr("net.prototxt:4:40: layer 'it' (PSROIPooling): bottom 'x0' has 8 channels, "
                        "but output_dim * group_size^2 is 12"));
}

}  // namespace
}  // namespace trainer
