#include "trainer/image/image_grid.h"

#include <gtest/gtest.h>

#include <cmath>

namespace trainer {
namespace {

TEST(ImageGridTest, TilesStandInRowsWithALineBetween) {
  const std::vector<float> numbers = {0, 1, 2, 3, 4};  // five filters of 1 x 1
  const std::vector<int64_t> shape = {5, 1, 1, 1};
  const Image image = MakeImageGrid(numbers, shape);
  EXPECT_EQ(image.channels, 1);
  EXPECT_EQ(image.width, 1 + 3 * 25);
  EXPECT_EQ(image.height, 1 + 2 * 25);
  const auto at = [&](int y, int x) {
    return image.pixels[static_cast<size_t>(y * image.width + x)];
  };
  EXPECT_EQ(at(0, 0), 0);
  EXPECT_EQ(at(1, 1), 0);        // the smallest value
  EXPECT_EQ(at(1, 1 + 25), 64);  // a quarter of the way
  EXPECT_EQ(at(1 + 25, 1 + 25), 255);
  EXPECT_EQ(at(25, 1 + 25), 0);  // the separating line
}

TEST(ImageGridTest, ThreeChannelsAreColoursOthersStandAlone) {
  const std::vector<float> numbers(2 * 3 * 4, 1);
  EXPECT_EQ(MakeImageGrid(numbers, std::vector<int64_t>{2, 3, 2, 2}).channels, 3);
  const Image grey = MakeImageGrid(numbers, std::vector<int64_t>{3, 2, 2, 2});
  EXPECT_EQ(grey.channels, 1);
  EXPECT_EQ(grey.width, 1 + 3 * 25);  // six tiles of 24
}

TEST(ImageGridTest, TallTilesAreNotEnlargedMoreThanWideOnes) {
  const std::vector<float> numbers(14, 1);
  const Image tall = MakeImageGrid(numbers, std::vector<int64_t>{2, 1, 7, 1});
  const Image wide = MakeImageGrid(numbers, std::vector<int64_t>{2, 1, 1, 7});
  EXPECT_EQ(tall.height, 1 + 3 * 7 + 1);
  EXPECT_EQ(wide.width, 1 + 2 * (3 * 7 + 1));
}

TEST(ImageGridTest, NumbersThatAreNotFiniteAreBlackOrWhite) {
  const std::vector<float> numbers = {NAN, INFINITY, -INFINITY, 2};
  const Image image = MakeImageGrid(numbers, std::vector<int64_t>{1, 1, 2, 2});
  EXPECT_EQ(image.pixels.size(), static_cast<size_t>(image.Plane()));
}

}  // namespace
}  // namespace trainer
