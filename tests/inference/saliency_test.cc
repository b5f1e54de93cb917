#include "inspect/saliency.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace trainer {
namespace {

using testing::ElementsAre;

TEST(SaliencyTest, HandValuesOfTheLargestMagnitudeOfTheChannels) {
  const std::vector<float> gradient = {1,  -2, 0, NAN,  // channel 0
                                       -4, 1,  0, 3};   // channel 1
  const Image image = MakeSaliency(gradient, {1, 2, 2, 2});
  EXPECT_EQ(image.channels, 1);
  EXPECT_THAT(image.pixels, ElementsAre(255, 128, 0, 191));
}

TEST(SaliencyTest, TheBrightestHundredthIsWhite) {
  std::vector<float> gradient(400, 1.0f);
  gradient[7] = 1000;
  gradient[8] = 0.5f;
  const Image image = MakeSaliency(gradient, {1, 1, 20, 20});
  EXPECT_EQ(image.pixels[7], 255);
  EXPECT_EQ(image.pixels[8], 128);
  EXPECT_EQ(image.pixels[9], 255);
}

TEST(SaliencyTest, FewPixelsWithAGradientAreSeen) {
  std::vector<float> gradient(400, 0.0f);
  EXPECT_EQ(MakeSaliency(gradient, {1, 1, 20, 20}).pixels, std::vector<uint8_t>(400, 0));
  gradient[7] = -1e-30f;
  EXPECT_EQ(MakeSaliency(gradient, {1, 1, 20, 20}).pixels[7], 255);
}

}  // namespace
}  // namespace trainer
