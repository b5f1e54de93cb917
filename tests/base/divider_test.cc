// Tests that a division by multiplication gives the quotient of every pair of numbers.

#include "trainer/base/divider.h"

#include <gtest/gtest.h>

#include <vector>

namespace trainer {
namespace {

template <class D>
class DividerTest : public testing::Test {
 protected:
  using Number = decltype(D().by());

  // Returns numbers around each power of two and around multiples of small numbers.
  static std::vector<Number> Numbers() {
    std::vector<Number> numbers;
    for (size_t bit = 0; bit < 8 * sizeof(Number); ++bit) {
      for (const Number factor : {1u, 3u, 5u, 7u, 641u}) {
        const Number near = (Number{1} << bit) * factor;
        for (Number distance = 0; distance < 3; ++distance) {
          numbers.push_back(near + distance);
          numbers.push_back(near - distance);
        }
      }
    }
    return numbers;
  }
};
using Dividers = testing::Types<Divider, LongDivider>;
TYPED_TEST_SUITE(DividerTest, Dividers);

TYPED_TEST(DividerTest, GivesTheQuotient) {
  const auto numbers = this->Numbers();
  for (const auto by : numbers) {
    if (by == 0) continue;
    const TypeParam divider(by);
    ASSERT_EQ(divider.by(), by);
    for (const auto x : numbers) ASSERT_EQ(divider.Quotient(x), x / by) << x << " / " << by;
  }
}

TYPED_TEST(DividerTest, DividesByOneUnlessTold) {
  for (const auto x : this->Numbers()) ASSERT_EQ(TypeParam().Quotient(x), x);
}

TYPED_TEST(DividerTest, TransposesMatrices) {
  // Two matrices of two rows and three columns.
  using Number = decltype(TypeParam().by());
  std::vector<Number> places;
  for (Number at = 0; at < 12; ++at) {
    places.push_back(TransposedIndex(at, TypeParam(2), TypeParam(3)));
  }
  EXPECT_EQ(places, (std::vector<Number>{0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11}));
}

}  // namespace
}  // namespace trainer
