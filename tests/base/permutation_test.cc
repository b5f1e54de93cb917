#include "trainer/base/random/permutation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<uint32_t> OrderOf(const PhiloxKey& key, uint32_t pass, uint64_t first, size_t count) {
  std::vector<uint32_t> order{7};
  Permute(key, pass, first, count, &order);
  return order;
}

// The orders are from permutation() in scripts/golden/philox.py.
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

std::vector<uint64_t> PermutedOrder(const PhiloxKey& key, uint32_t pass, uint32_t domain,
                                    uint64_t count) {
  std::vector<uint64_t> order;
  for (uint64_t at = 0; at < count; ++at) {
    order.push_back(PermutedAt(key, pass, domain, count, at));
  }
  return order;
}

// The orders are from permuted_at() in scripts/golden/philox.py.
TEST(PermutedAtTest, GoldenOrders) {
  EXPECT_THAT(PermutedOrder({1, 2}, 1, 0, 20),
              ElementsAre(18, 19, 3, 2, 13, 17, 8, 4, 1, 16, 11, 10, 12, 14, 7, 9, 6, 15, 5, 0));
  EXPECT_THAT(PermutedOrder({uint64_t{7} << 33 | 5, 9}, 0xFFFFFFFF, 3, 12),
              ElementsAre(1, 0, 6, 2, 7, 3, 4, 10, 5, 8, 9, 11));
  EXPECT_EQ(PermutedAt({1, 2}, 7, 1, uint64_t{1} << 40, 123456789), 556291748183u);
}

TEST(PermutedAtTest, HasEachNumberOnceWhateverTheCount) {
  for (uint64_t count = 1; count < 150; ++count) {
    std::vector<uint64_t> order = PermutedOrder({3, 4}, 5, 6, count), all(count);
    std::ranges::sort(order);
    std::iota(all.begin(), all.end(), uint64_t{0});
    EXPECT_EQ(order, all);
  }
}

TEST(PermutedAtTest, DependsOnKeyPassAndDomain) {
  const std::set<std::vector<uint64_t>> orders = {
      PermutedOrder({3, 4}, 5, 6, 50), PermutedOrder({4, 4}, 5, 6, 50),
      PermutedOrder({3, 5}, 5, 6, 50), PermutedOrder({3, 4}, 6, 6, 50),
      PermutedOrder({3, 4}, 5, 7, 50)};
  EXPECT_EQ(orders.size(), 5u);
}

// Chi-square over the 10 x 10 pairs of place and number has 81 degrees of freedom; it exceeds 130
// in 4 of 10,000 tests.
TEST(PermutedAtTest, PutsEachNumberEquallyOftenAtEachPlace) {
  constexpr int kCount = 10, kPasses = 5000;
  int times[kCount][kCount] = {};
  for (uint32_t pass = 0; pass < kPasses; ++pass) {
    for (int at = 0; at < kCount; ++at) {
      ++times[at][PermutedAt({5, 1}, pass, 0, kCount, static_cast<uint64_t>(at))];
    }
  }
  double chi_square = 0;
  constexpr double kExpected = static_cast<double>(kPasses) / kCount;
  for (const auto& row : times) {
    for (const int seen : row) chi_square += (seen - kExpected) * (seen - kExpected) / kExpected;
  }
  EXPECT_LT(chi_square, 130);
  EXPECT_GT(chi_square, 45);
}

TEST(PermutedAtTest, DrawsEveryOrderEquallyOften) {
  std::map<std::vector<uint64_t>, int> seen;
  for (uint32_t pass = 0; pass < 6000; ++pass) ++seen[PermutedOrder({5, 1}, pass, 0, 3)];
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
