#include "trainer/base/random/permutation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<uint32_t> OrderOf(const PhiloxKey& key, uint32_t pass, uint64_t first, size_t count) {
  std::vector<uint32_t> order{7};
  Permute(key, pass, first, count, &order);
  return order;
}

// Of permutation() in scripts/golden/philox.py.
TEST(PermuteTest, GoldenOrders) {
  EXPECT_THAT(OrderOf({1, 2}, 1, 0, 20),
              ElementsAre(14, 18, 15, 12, 3, 5, 4, 1, 10, 8, 9, 13, 2, 0, 19, 7, 11, 17, 6, 16));
  EXPECT_THAT(OrderOf({uint64_t{7} << 33 | 5, 9}, 0xFFFFFFFF, (uint64_t{3} << 32) + 1, 12),
              ElementsAre(3, 11, 9, 2, 8, 6, 7, 10, 5, 4, 0, 1));
  EXPECT_THAT(OrderOf({3, 0}, 0, 0, 6), ElementsAre(2, 0, 4, 5, 1, 3));
}

TEST(PermuteTest, TakesNoneAndOne) {
  EXPECT_THAT(OrderOf({1, 2}, 0, 0, 0), IsEmpty());
  EXPECT_THAT(OrderOf({1, 2}, 0, 0, 1), ElementsAre(0));
}

TEST(PermuteTest, DrawsEveryOrderEquallyOften) {
  std::map<std::vector<uint32_t>, int> seen;
  for (uint32_t pass = 0; pass < 6000; ++pass) ++seen[OrderOf({5, 1}, pass, 0, 3)];
  EXPECT_EQ(seen.size(), 6u);
  for (const auto& [order, times] : seen) {
    EXPECT_GT(times, 850);
    EXPECT_LT(times, 1150);
  }
}

TEST(UniformBelowTest, CoversItsRange) {
  EXPECT_EQ(UniformBelow(0, 10), 0);
  EXPECT_EQ(UniformBelow(0xFFFFFFFF, 10), 9);
  EXPECT_EQ(UniformBelow(0x80000000, int64_t{1} << 32), int64_t{1} << 31);
  EXPECT_EQ(UniformBelow(0x7FFFFFFF, size_t{2}), 0u);
}

}  // namespace
}  // namespace trainer
