#include "trainer/tensor/shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/base/error/error.h"
#include "trainer/tensor/dtype.h"

namespace trainer {
namespace {

using testing::HasSubstr;

TEST(ShapeTest, PrintsAsCaffeDoes) {
  EXPECT_EQ((Shape{64, 20, 24, 24}.ToString()), "64 20 24 24 (737280)");
  EXPECT_EQ(Shape{}.ToString(), "(1)");
}

TEST(ShapeTest, NegativeAxesCountFromTheEnd) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.CanonicalAxis(-1), 2);
  EXPECT_EQ(shape.CanonicalAxis(-3), 0);
  EXPECT_EQ(shape.CanonicalAxis(3), -1);
  EXPECT_EQ(shape.CanonicalAxis(-4), -1);
}

TEST(ShapeTest, CountsRangesOfAxes) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.Count(), 24);
  EXPECT_EQ(shape.Count(1), 12);
  EXPECT_EQ(shape.Count(0, 2), 6);
  EXPECT_EQ(shape.Count(1, 1), 1);
}

std::string Refusal(std::initializer_list<int64_t> dims) {
  try {
    Shape shape(dims);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    return error.what();
  }
  return "accepted";
}

TEST(ShapeTest, RefusesWhatNoMemoryHolds) {
  EXPECT_THAT(Refusal({1 << 30, 1 << 30, 1 << 30}),
              HasSubstr("a blob of shape 1073741824 x 1073741824 x 1073741824 is larger than any"));
  EXPECT_THAT(Refusal({int64_t{1} << 62, 16}), HasSubstr("larger than any memory"));
  EXPECT_THAT(Refusal({2, -1}), HasSubstr("has a negative axis"));
}

TEST(ShapeTest, RefusesMoreThan32Axes) {
  const std::vector<int64_t> dims(33, 1);
  EXPECT_THROW(Shape{std::span(dims)}, Error);
}

TEST(ShapeTest, ReplacesAxes) {
  const int64_t dims[] = {6, 2};
  EXPECT_EQ((Shape{2, 3, 4}.Replace(1, 3, dims)), (Shape{2, 6, 2}));
  EXPECT_EQ((Shape{2, 3}.With(1, 9)), (Shape{2, 9}));
}

// Returns the offsets of row `row` in a tensor.
std::vector<int64_t> Offsets(const Rows& rows, int64_t row) {
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i < rows.length; ++i) offsets.push_back(rows.Start(row) + i * rows.inner);
  return offsets;
}

TEST(AxisRowsTest, ChannelsOfAnImageLieTogether) {
  const Rows rows = AxisRows({2, 3, 2, 2}, 1);
  EXPECT_EQ(rows.count, 8);
  EXPECT_THAT(Offsets(rows, 1), testing::ElementsAre(3, 4, 5));
}

TEST(AxisRowsTest, WidthOfAnImageStepsOverTheChannels) {
  const Rows rows = AxisRows({1, 3, 2, 2}, 3);
  EXPECT_THAT(Offsets(rows, 0), testing::ElementsAre(0, 3));
  EXPECT_THAT(Offsets(rows, 3), testing::ElementsAre(6, 9));
}

TEST(AxisRowsTest, OtherRanksAreRowMajor) {
  const Rows rows = AxisRows({2, 3, 4}, 1);
  EXPECT_THAT(Offsets(rows, 5), testing::ElementsAre(13, 17, 21));
}

TEST(BFloat16Test, RoundsToNearestEvenAndKeepsNan) {
  BFloat16 half_way_down, half_way_up, nan;
  Store(half_way_down, 1.00390625f);  // between 1 and 1.0078125, rounds to the even 1
  Store(half_way_up, 1.01171875f);    // between 1.0078125 and 1.015625, rounds up to even
  Store(nan, std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(Load(half_way_down), 1.0f);
  EXPECT_EQ(Load(half_way_up), 1.015625f);
  EXPECT_NE(Load(nan), Load(nan));
}

TEST(Float16Test, RoundsTo11BitsAndOverflows) {
  Float16 fine, large, nan;
  Store(fine, 1 + 0x1p-11f + 0x1p-20f);
  Store(large, 70000.0f);
  Store(nan, std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(Load(fine), 1 + 0x1p-10f);
  EXPECT_EQ(Load(large), std::numeric_limits<float>::infinity());
  EXPECT_NE(Load(nan), Load(nan));
}

TEST(StorageTypeTest, TheCpuRefusesF16) {
  EXPECT_EQ(NameOf(DType::kF16), "f16");
  EXPECT_EQ(SizeOf(DType::kF16), 2u);
  EXPECT_THAT([] { DispatchCpuDtype(DType::kF16, [](auto) {}); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("on a device that does not")));
}

}  // namespace
}  // namespace trainer
