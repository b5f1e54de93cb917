// Loops over rows of Y, Cb and Cr.

#include "ycc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace trainer {
namespace {

using testing::ElementsAre;

// Room for a row of `count` samples as the loops use it, and where its first one is.
template <class T>
struct Row {
  explicit Row(int count)
      : all(static_cast<size_t>(count) + 3 * size_t{kYccBlock}), first(all.data() + kYccBlock) {}
  std::vector<T> all;
  T* first;
};

Row<uint8_t> RowOf(const std::vector<uint8_t>& samples) {
  Row<uint8_t> row(static_cast<int>(samples.size()));
  std::copy(samples.begin(), samples.end(), row.first);
  return row;
}

std::vector<int> Bytes(const std::vector<uint16_t>& pairs, size_t count) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(pairs.data());
  return {bytes, bytes + count};
}

std::vector<int> Across(const std::vector<uint8_t>& samples) {
  Row<uint8_t> in = RowOf(samples);
  Row<uint16_t> out(static_cast<int>(samples.size()));
  UpsampleAcross(in.first, static_cast<int>(samples.size()), out.all.data());
  return Bytes(out.all, 2 * samples.size());
}

std::vector<int> Both(const std::vector<uint8_t>& near, const std::vector<uint8_t>& far) {
  const Row<uint8_t> a = RowOf(near), b = RowOf(far);
  Row<uint16_t> columns(static_cast<int>(near.size())), out(static_cast<int>(near.size()));
  UpsampleBoth(a.first, b.first, static_cast<int>(near.size()), columns.first, out.all.data());
  return Bytes(out.all, 2 * near.size());
}

// 3/4 and 1/4: 10 and 20 give 12.5, down to 12 at the left one of a pair, up to 13 at the right
// one.
TEST(YccTest, HandValuesOfASampleForTwoColumns) {
  EXPECT_THAT(Across({10, 20, 21}), ElementsAre(10, 13, 17, 20, 21, 21));
  EXPECT_THAT(Across({0, 255, 0}), ElementsAre(0, 64, 191, 191, 64, 0));
  EXPECT_THAT(Across({7}), ElementsAre(7, 7));
}

// The columns are 3 * near + far: 40, 80, 120; a quarter of their neighbours, in 16th parts.
TEST(YccTest, HandValuesOfASampleForTwoColumnsAndTwoRows) {
  EXPECT_THAT(Both({10, 20, 30}, {10, 20, 30}), ElementsAre(10, 12, 18, 22, 28, 30));
  EXPECT_THAT(Both({0, 255}, {255, 0}), ElementsAre(64, 96, 159, 191));
  EXPECT_THAT(Both({9}, {9}), ElementsAre(9, 9));
}

// Blocks of vectors and what is left of a row are one formula.
TEST(YccTest, RowsOfAnyLengthAreUpsampledAlike) {
  std::vector<uint8_t> near, far;
  for (int count = 1; count <= 100; ++count) {
    near.push_back(static_cast<uint8_t>(count * 83));
    far.push_back(static_cast<uint8_t>(count * 59 + 7));
    const std::vector<int> across = Across(near), both = Both(near, far);
    for (int x = 0; x < 2 * count; ++x) {
      const int at = x / 2, next = std::clamp(x % 2 == 0 ? at - 1 : at + 1, 0, count - 1);
      const auto column = [&](int i) { return 3 * near[size_t(i)] + far[size_t(i)]; };
      const int right = x % 2;
      ASSERT_EQ(across[size_t(x)], (3 * near[size_t(at)] + near[size_t(next)] + 1 + right) / 4)
          << count << " " << x;
      ASSERT_EQ(both[size_t(x)], (3 * column(at) + column(next) + 8 - right) / 16)
          << count << " " << x;
    }
  }
}

int Rounded(double value) {
  return std::clamp(static_cast<int>(std::floor(value / 65536 + 0.5)), 0, 255);
}

// libjpeg's factors in units of 2^-16: 1.402, 0.34414, 0.71414 and 1.772, rounded.
TEST(YccTest, EveryColorIsThatOfTheFormula) {
  std::vector<uint8_t> y(256), cb(256), cr(256), blue(256), green(256), red(256);
  for (size_t i = 0; i < 256; ++i) y[i] = static_cast<uint8_t>(i);
  int wrong = 0;
  for (int b = 0; b < 256; ++b) {
    for (int r = 0; r < 256; ++r) {
      std::fill(cb.begin(), cb.end(), static_cast<uint8_t>(b));
      std::fill(cr.begin(), cr.end(), static_cast<uint8_t>(r));
      YccToBgr(y.data(), cb.data(), cr.data(), 256, blue.data(), green.data(), red.data());
      for (size_t i = 0; i < 256; ++i) {
        const double luma = 65536.0 * y[i], u = b - 128, v = r - 128;
        wrong += red[i] != Rounded(luma + 91881 * v);
        wrong += green[i] != Rounded(luma - 22554 * u - 46802 * v);
        wrong += blue[i] != Rounded(luma + 116130 * u);
      }
    }
  }
  EXPECT_EQ(wrong, 0);
}

TEST(YccTest, NothingIsWrittenBehindARow) {
  const Row<uint8_t> y = RowOf(std::vector<uint8_t>(70, 200));
  for (int width = 1; width <= 70; ++width) {
    std::vector<uint8_t> out(3 * 80, 1);
    YccToBgr(y.first, y.first, y.first, width, out.data(), out.data() + 80, out.data() + 160);
    for (int c = 0; c < 3; ++c) {
      for (int x = 0; x < 80; ++x) {
        ASSERT_EQ(out[size_t(80 * c + x)] == 1, x >= width) << width << " " << c << " " << x;
      }
    }
  }
}

}  // namespace
}  // namespace trainer
