#include "trainer/base/half.h"

#include <gtest/gtest.h>

#include <cmath>

namespace trainer {
namespace {

// The definition: sign, exponent and fraction of IEEE 754-2008's binary16.
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

}  // namespace
}  // namespace trainer
