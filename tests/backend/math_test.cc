#include "trainer/backend/loops/math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace trainer {
namespace {

TEST(MathTest, ErfIsWithinThreeUnitsOfTheLastPlace) {
  for (int i = -6000; i <= 6000; ++i) {
    const float x = static_cast<float>(i) / 997;
    const double want = std::erf(double{x});
    const float near = static_cast<float>(want);
    const double unit = std::nextafter(std::fabs(near), 2.0f) - std::fabs(near);
    EXPECT_LE(std::fabs(Erf(x) - want), 3 * unit) << x;
  }
}

TEST(MathTest, ErfOfValuesWithoutALimit) {
  EXPECT_EQ(Erf(0), 0);
  EXPECT_TRUE(std::signbit(Erf(-0.0f)));
  EXPECT_EQ(Erf(std::numeric_limits<float>::infinity()), 1);
  EXPECT_EQ(Erf(-std::numeric_limits<float>::max()), -1);
  EXPECT_TRUE(std::isnan(Erf(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace trainer
