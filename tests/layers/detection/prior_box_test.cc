#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_checks.h"
#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::HasSubstr;

constexpr RunnerOptions kPriorBoxTest{.phase = caffe::TEST, .training = false};

std::string Prior(const std::string& fields) {
  return "type: \"PriorBox\"\nprior_box_param { " + fields + " }";
}

std::string RefusalPriorBox(const std::string& fields) {
  return RefusalOf(Prior(fields), {{1, 2, 1, 2}, {1, 3, 10, 20}}, kPriorBoxTest);
}

TEST(PriorBoxTest, HandValuesOfASquareInEachCell) {
  LayerRunner layer(Prior("min_size: 4 variance: 0.1 variance: 0.2 variance: 0.3 variance: 0.4"),
                    {{5, 7, 1, 2}, {5, 3, 10, 20}}, kPriorBoxTest);
  layer.Forward();
  EXPECT_EQ(layer.OutputShape(), Shape({1, 2, 8}));
  ExpectNear(layer.Output(),
             {0.15f, 0.3f, 0.35f, 0.7f, 0.65f, 0.3f, 0.85f, 0.7f,  //
              0.1f, 0.2f, 0.3f, 0.4f, 0.1f, 0.2f, 0.3f, 0.4f},
             1e-6f);
}

TEST(PriorBoxTest, HandValuesOfAllShapesInTheirOrder) {
  // The boxes are 4x4, sqrt(4 * 16) = 8x8, 8x2 and 2x8, around (10, 5) of 20x10 pixels.
  LayerRunner layer(Prior("min_size: 4.9 max_size: 16.2 aspect_ratio: 4 aspect_ratio: 4"),
                    {{1, 1, 1, 1}, {1, 1, 10, 20}}, kPriorBoxTest);
  layer.Forward();
  ExpectNear(layer.Output(),
             {0.4f,  0.3f, 0.6f,  0.7f, 0.3f, 0.1f, 0.7f, 0.9f, 0.3f, 0.4f, 0.7f, 0.6f,  //
              0.45f, 0.1f, 0.55f, 0.9f, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f,
              0.1f,  0.1f, 0.1f,  0.1f, 0.1f, 0.1f, 0.1f, 0.1f},
             1e-6f);
}

TEST(PriorBoxTest, HandValuesOfAnImageOfGivenSize) {
  LayerRunner layer(Prior("min_size: 20 img_size: 20 step: 2 offset: 0 clip: true variance: 1"),
                    {{1, 1, 1, 2}, {1}}, kPriorBoxTest);
  layer.Forward();
  ExpectNear(layer.Output(), {0, 0, 0.5f, 0.5f, 0, 0, 0.6f, 0.5f, 1, 1, 1, 1, 1, 1, 1, 1}, 1e-6f);
}

TEST(PriorBoxTest, GoldenValues) { ExpectGoldenFile("layers/shapes/prior_box.txt"); }

TEST(PriorBoxTest, ImagesEqualInPlace) {
  ExpectInPlaceEqual(Prior("min_size: 4"), {{2, 3, 4, 5}, {2, 3, 16, 20}}, {}, kPriorBoxTest);
}

TEST(PriorBoxTest, RefusesBadSizes) {
  EXPECT_THAT(RefusalPriorBox(""),
              HasSubstr("min_size is not given; it is the side of the smallest square "
                        "in pixels"));
  EXPECT_THAT(
      RefusalPriorBox("min_size: 3 min_size: 0.5"),
      HasSubstr("net.prototxt:4:31: layer 'it' (PriorBox): min_size is 0.5; it must be a side in "
                "whole pixels, at least 1"));
  EXPECT_THAT(RefusalPriorBox("min_size: 3 min_size: 5 max_size: 9"),
              HasSubstr("max_size is given 1 times and min_size 2; give one for each, or none"));
  EXPECT_THAT(RefusalPriorBox("min_size: 3 max_size: 3"),
              HasSubstr("max_size 3 is not above its min_size, 3"));
  EXPECT_THAT(RefusalPriorBox("min_size: 3 max_size: nan"),
              HasSubstr("max_size is nan; it must be a finite number"));
  EXPECT_THAT(RefusalPriorBox("min_size: 3 aspect_ratio: 2 aspect_ratio: 0"),
              HasSubstr("aspect_ratio is 0; it must be width divided by height, above 0"));
}

TEST(PriorBoxTest, RefusesBadVariancesStepsAndImages) {
  EXPECT_THAT(RefusalPriorBox("min_size: 3 variance: 1 variance: 2"),
              HasSubstr("variance is given 2 times; give one, or four"));
  EXPECT_THAT(RefusalPriorBox("min_size: 3 variance: 0"),
              HasSubstr("variance is 0; it must be above 0"));
  EXPECT_THAT(RefusalPriorBox("min_size: 3 img_size: 0"),
              HasSubstr("img_size is 0; it must be above 0"));
  EXPECT_THAT(RefusalPriorBox("min_size: 3 img_h: 4"),
              HasSubstr("img_h is given without img_w; give both"));
  EXPECT_THAT(RefusalPriorBox("min_size: 3 step: 2 step_h: 4 step_w: 4"),
              HasSubstr("step_h and step are both given; keep one of them"));
  EXPECT_THAT(RefusalPriorBox("min_size: 3 step_h: 4 step_w: -1"),
              HasSubstr("step_w is -1; it must be above 0"));
  EXPECT_THAT(RefusalPriorBox("min_size: 3 offset: inf"),
              HasSubstr("offset is inf; it must be a finite number"));
  EXPECT_THAT(
      RefusalOf(Prior("min_size: 3"), {{4, 3}, {1, 1, 4, 4}}, kPriorBoxTest),
      HasSubstr("bottom 'x0' has shape (4, 3), but this layer needs a feature map (N, C, H,"));
  EXPECT_THAT(RefusalOf(Prior("min_size: 3"), {{1, 1, 4, 3}, {4}}, kPriorBoxTest),
              HasSubstr("bottom 'x1' has shape (4), but this layer needs an image (N, C, H, W) as "
                        "its second bottom, or img_size in"));
  EXPECT_THAT(RefusalOf(Prior("min_size: 3") + " propagate_down: true propagate_down: false",
                        {{1, 1, 4, 3}, {1, 1, 4, 4}}),
              HasSubstr("bottom 'x0' cannot get a gradient from this layer"));
}

}  // namespace
}  // namespace trainer
