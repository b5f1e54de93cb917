#include "inspect/mosaic.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace trainer {
namespace {

int At(const Image& image, int y, int x) {
  return image.pixels[static_cast<size_t>(y * image.width + x)];
}

TEST(MosaicTest, HandValuesOfMapsSideBySide) {
  // Five maps of 2 x 2 have the values 0, 1, ..., 19. A tile is 24 pixels wide, 12 per value.
  std::vector<float> values(20);
  std::iota(values.begin(), values.end(), 0.0f);
  const Image image = MakeMosaic(values, std::vector<int64_t>{5, 2, 2});
  EXPECT_EQ(image.channels, 1);
  EXPECT_EQ(image.width, 1 + 3 * 25);
  EXPECT_EQ(image.height, 1 + 2 * 25);
  EXPECT_EQ(At(image, 1, 1), 0);                // map 0, first value
  EXPECT_EQ(At(image, 13, 13), 40);             // map 0, last value, 3 / 19 of 255
  EXPECT_EQ(At(image, 1, 51), 107);             // map 2, 8 / 19
  EXPECT_EQ(At(image, 26, 1), 161);             // map 3 begins the second row, 12 / 19
  EXPECT_EQ(At(image, 26 + 12, 26 + 12), 255);  // the last value of map 4
  EXPECT_EQ(At(image, 26, 51), 0);              // the sixth place is empty
}

TEST(MosaicTest, AVectorIsOneTileOfRows) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{3}, std::vector<int64_t>{3, 1, 1}}) {
    const Image image = MakeMosaic(std::vector<float>{1, 2, 5}, shape);  // 2 x 2 with an empty cell
    EXPECT_EQ(image.width, 26);
    EXPECT_EQ(image.height, 26);
    EXPECT_EQ(At(image, 1, 1), 0);
    EXPECT_EQ(At(image, 1, 13), 64);
    EXPECT_EQ(At(image, 13, 1), 255);
    EXPECT_EQ(At(image, 13, 13), 0);
  }
  EXPECT_EQ(MakeMosaic(std::vector<float>{7}, {}).width, 26) << "a scalar";
}

TEST(MosaicTest, AMatrixIsOneTile) {
  const Image image = MakeMosaic(std::vector<float>{0, 1, 2, 3, 4, 5}, std::vector<int64_t>{2, 3});
  EXPECT_EQ(image.width, 26);
  EXPECT_EQ(image.height, 18);
  EXPECT_EQ(At(image, 9, 17), 255);
}

TEST(MosaicTest, LargeMapsAreShrunkToTheMeanOfTheirPixels) {
  // The map is 1022 x 2: each pixel of the picture is the mean of 2 x 2 values.
  std::vector<float> values(1022 * 2, 0.0f);
  values[0] = 4;                          // the mean 1
  values[4] = values[5] = values[6] = 4;  // the mean 3
  const Image image = MakeMosaic(values, std::vector<int64_t>{1, 1022, 2});
  EXPECT_EQ(image.height, kMosaicSide + 1);
  EXPECT_EQ(image.width, 3);
  EXPECT_EQ(At(image, 1, 1), 85);
  EXPECT_EQ(At(image, 2, 1), 255);
  EXPECT_EQ(At(image, 3, 1), 0);
  const std::vector<float> many(size_t{400} * 40 * 40, 1.0f);
  const Image mosaic = MakeMosaic(many, std::vector<int64_t>{400, 40, 40});
  EXPECT_EQ(mosaic.width, 1 + 16 * 32) << "256 of 400 tiles, of 31 pixels";
  EXPECT_EQ(mosaic.height, 1 + 16 * 32);
}

TEST(MosaicTest, FiltersOfThreeChannelsAreInColour) {
  const std::vector<float> filters(2 * 3 * 5 * 5, 1.0f);
  EXPECT_EQ(MakeTiles(filters, std::vector<int64_t>{2, 3, 5, 5}).channels, 3);
  const std::vector<float> large(size_t{4} * 3 * 300 * 300, 1.0f);
  const Image image = MakeTiles(large, std::vector<int64_t>{4, 3, 300, 300});
  EXPECT_EQ(image.channels, 3);
  EXPECT_EQ(image.width, 1 + 2 * 256);
}

}  // namespace
}  // namespace trainer
