// Tests that a division by multiplication gives the quotient of every pair of numbers.

#include "trainer/base/divider.h"

#include <gtest/gtest.h>

#include <vector>

namespace trainer {
namespace {

// Returns numbers around each power of two and around multiples of small numbers.
std::vector<uint32_t> Numbers() {
  std::vector<uint32_t> numbers;
  for (int bit = 0; bit < 32; ++bit) {
    for (const uint32_t factor : {1u, 3u, 5u, 7u, 641u}) {
      const uint32_t near = (uint32_t{1} << bit) * factor;
      for (uint32_t distance = 0; distance < 3; ++distance) {
        numbers.push_back(near + distance);
        numbers.push_back(near - distance);
      }
    }
  }
  return numbers;
}

TEST(DividerTest, GivesTheQuotient) {
  const std::vector<uint32_t> numbers = Numbers();
  for (const uint32_t by : numbers) {
    if (by == 0) continue;
    const Divider divider(by);
    ASSERT_EQ(divider.by(), by);
    for (const uint32_t x : numbers) ASSERT_EQ(divider.Quotient(x), x / by) << x << " / " << by;
  }
}

TEST(DividerTest, DividesByOneUnlessTold) {
  for (const uint32_t x : Numbers()) ASSERT_EQ(Divider().Quotient(x), x);
}

}  // namespace
}  // namespace trainer
