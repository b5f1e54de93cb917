#include "trainer/tensor/nchw_order.h"

#include <gtest/gtest.h>

namespace trainer {
namespace {

TEST(NchwOrderTest, HandValuesOfImages) {
  const NchwOrder order(Shape{2, 3, 1, 2});
  EXPECT_EQ(order.Step(), 3);
  const int64_t memory[] = {0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11};
  for (int64_t plain = 0; plain < 12; ++plain) {
    EXPECT_EQ(order.Memory(plain), memory[plain]);
    EXPECT_EQ(order.Plain(memory[plain]), plain);
  }
}

TEST(NchwOrderTest, HandValuesOfMoreThan32Bits) {
  const NchwOrder order(Shape{3, 5, 40000, 50000});
  constexpr int64_t kPixels = 2'000'000'000;
  // Item 2, channel 3, pixel 7.
  EXPECT_EQ(order.Memory((2 * 5 + 3) * kPixels + 7), (2 * kPixels + 7) * 5 + 3);
  EXPECT_EQ(order.Plain((2 * kPixels + 7) * 5 + 3), (2 * 5 + 3) * kPixels + 7);
}

TEST(NchwOrderTest, OtherTensorsKeepTheirOrder) {
  for (const Shape& shape :
       {Shape{2, 3, 4}, Shape{2, 1, 3, 4}, Shape{2, 3, 1, 1}, Shape{2, 0, 3, 4}}) {
    EXPECT_EQ(NchwOrder(shape).Step(), 1);
    EXPECT_EQ(NchwOrder(shape).Memory(5), 5);
    EXPECT_EQ(NchwOrder(shape).Plain(5), 5);
  }
}

}  // namespace
}  // namespace trainer
