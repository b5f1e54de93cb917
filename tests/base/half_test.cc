#include "trainer/base/random/half.h"

#include <gtest/gtest.h>

#include <cmath>

namespace trainer {
namespace {

// Returns the value by the definition: sign, exponent and fraction of binary16 in IEEE 754-2008.
double Defined(uint16_t half) {
  const double sign = (half & 0x8000u) != 0 ? -1 : 1;
  const int exponent = half >> 10 & 0x1f, fraction = half & 0x3ff;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  if (exponent == 31) return fraction == 0 ? sign * HUGE_VAL : std::nan("");
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

TEST(HalfTest, EveryPatternOfBitsIsTheNumberOfItsDefinition) {
  for (uint32_t bits = 0; bits < 1u << 16; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const double expected = Defined(half);
    const float number = FromHalf(half);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(number)) << bits;
    } else {
      EXPECT_EQ(number, expected) << bits;
      EXPECT_EQ(std::signbit(number), std::signbit(expected)) << bits;
    }
  }
}

// Numbers round to the nearer neighbour, and a midpoint rounds to the neighbour whose last bit is
// 0. The next value after 65504 would be 65536, which is encoded as infinity.
TEST(HalfTest, EveryNumberGoesToTheNearestHalfAndTheMiddleToTheEvenOne) {
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const auto low = static_cast<uint16_t>(bits), high = static_cast<uint16_t>(bits + 1);
    const double next = high == 0x7c00 ? 65536 : Defined(high);
    const auto middle = static_cast<float>((Defined(low) + next) / 2);
    for (const float sign : {1.0f, -1.0f}) {
      const auto with_sign = [&](uint16_t half) {
        return static_cast<uint16_t>(half | (sign < 0 ? 0x8000u : 0u));
      };
      ASSERT_EQ(ToHalf(sign * static_cast<float>(Defined(low))), with_sign(low));
      ASSERT_EQ(ToHalf(sign * std::nextafter(middle, 0.0f)), with_sign(low)) << bits;
      ASSERT_EQ(ToHalf(sign * std::nextafter(middle, 1e6f)), with_sign(high)) << bits;
      ASSERT_EQ(ToHalf(sign * middle), with_sign(bits % 2 == 0 ? low : high)) << bits;
    }
  }
}

TEST(HalfTest, WhatIsTooLargeIsInfiniteAndNanStays) {
  EXPECT_EQ(ToHalf(65519.996f), 0x7bff);
  for (const float large : {65520.0f, 1e6f, 3e38f, HUGE_VALF}) {
    EXPECT_EQ(ToHalf(large), 0x7c00) << large;
    EXPECT_EQ(ToHalf(-large), 0xfc00) << large;
  }
  EXPECT_TRUE(std::isnan(FromHalf(ToHalf(std::nanf("")))));
  EXPECT_EQ(ToHalf(1e-40f), 0);
}

}  // namespace
}  // namespace trainer
