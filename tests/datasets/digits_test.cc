#include "trainer/datasets/digits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <numeric>
#include <set>
#include <vector>

namespace trainer {
namespace {

uint32_t Checksum(uint64_t seed, uint32_t set, int count) {
  uLong crc = crc32(0, nullptr, 0);
  for (int i = 0; i < count; ++i) {
    const DigitImage image = DrawDigit(seed, set, static_cast<uint64_t>(i));
    const auto label = static_cast<Bytef>(image.label);
    crc = crc32(crc, &label, 1);
    crc = crc32(crc, image.pixels.data(), static_cast<uInt>(image.pixels.size()));
  }
  return static_cast<uint32_t>(crc);
}

TEST(DigitsTest, AreTheSameBytesOnEveryMachine) {
  // The checksum was recorded once; it may only change together with the drawings.
  EXPECT_EQ(Checksum(1, 0, 500), 1630000548u);
}

TEST(DigitsTest, DifferBySeedSetAndIndex) {
  const auto base = DrawDigit(1, 0, 0).pixels;
  EXPECT_EQ(DrawDigit(1, 0, 0).pixels, base);
  EXPECT_NE(DrawDigit(2, 0, 0).pixels, base);
  EXPECT_NE(DrawDigit(1, 1, 0).pixels, base);
  EXPECT_NE(DrawDigit(1, 0, 1).pixels, base);
  std::set<std::vector<uint8_t>> all;
  for (uint32_t set = 0; set < 2; ++set) {
    for (uint64_t i = 0; i < 1000; ++i) {
      const auto pixels = DrawDigit(1, set, i).pixels;
      all.insert({pixels.begin(), pixels.end()});
    }
  }
  EXPECT_EQ(all.size(), 2000u);
}

TEST(DigitsTest, ShowEveryClassAboutEquallyOften) {
  std::vector<int> count(10);
  for (uint64_t i = 0; i < 5000; ++i) {
    const int label = DrawDigit(1, 0, i).label;
    ASSERT_GE(label, 0);
    ASSERT_LT(label, 10);
    ++count[static_cast<size_t>(label)];
  }
  for (const int n : count) {
    EXPECT_GT(n, 400);
    EXPECT_LT(n, 600);
  }
}

TEST(DigitsTest, HaveInkOnAnEmptyMargin) {
  for (uint64_t i = 0; i < 2000; ++i) {
    const DigitImage image = DrawDigit(1, 0, i);
    const int strong = static_cast<int>(
        std::count_if(image.pixels.begin(), image.pixels.end(), [](uint8_t p) { return p > 100; }));
    ASSERT_GT(strong, 8) << i;
    ASSERT_LT(strong, 400) << i;
  }
}

// Compares each picture with the mean picture of each class, which is the simplest classifier. It
// must do much better than chance but far from well, so that there is something to learn.
TEST(DigitsTest, AreNeitherTrivialNorNoise) {
  constexpr size_t kPixels = DigitImage::kSide * DigitImage::kSide;
  std::vector<std::vector<double>> mean(10, std::vector<double>(kPixels));
  std::vector<int> count(10);
  for (uint64_t i = 0; i < 5000; ++i) {
    const DigitImage image = DrawDigit(1, 0, i);
    const auto label = static_cast<size_t>(image.label);
    ++count[label];
    for (size_t p = 0; p < kPixels; ++p) mean[label][p] += image.pixels[p];
  }
  int right = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    const DigitImage image = DrawDigit(1, 1, i);
    int best = -1;
    double best_distance = 0;
    for (size_t label = 0; label < 10; ++label) {
      double distance = 0;
      for (size_t p = 0; p < kPixels; ++p) {
        const double d = image.pixels[p] - mean[label][p] / count[label];
        distance += d * d;
      }
      if (best < 0 || distance < best_distance) {
        best = static_cast<int>(label);
        best_distance = distance;
      }
    }
    right += best == image.label;
  }
  EXPECT_GT(right, 400);
  EXPECT_LT(right, 850);
}

}  // namespace
}  // namespace trainer
