#include "node/tree_sum.h"

#include <gtest/gtest.h>

#include <vector>

namespace trainer {
namespace {

constexpr float kHuge = 1e30f;

// Returns the sum of parts that each hold one number everywhere.
float SumOf(const std::vector<float>& numbers) {
  std::vector<std::vector<float>> values;
  std::vector<const float*> parts;
  for (const float number : numbers) values.emplace_back(3000, number);
  for (const std::vector<float>& of_rank : values) parts.push_back(of_rank.data());
  std::vector<float> sum(3000, 7.0f);
  TreeSum(parts, sum.data(), sum.size());
  EXPECT_EQ(sum, std::vector<float>(3000, sum[0]));
  std::vector<float*> in_place;
  for (std::vector<float>& of_rank : values) in_place.push_back(of_rank.data());
  TreeSumInPlace(in_place, 0, 3000);
  EXPECT_EQ(values.back(), sum);
  return sum[0];
}

TEST(AddTest, AddsNeighboursFirst) {
  EXPECT_EQ(SumOf({1, kHuge, -kHuge}), 0);
  EXPECT_EQ(SumOf({kHuge, -kHuge, 1}), 1);
  EXPECT_EQ(SumOf({1, kHuge, -kHuge, 1}), 0) << "from left to right it would be 1";
  EXPECT_EQ(SumOf({kHuge, -kHuge, 1, 1}), 2);
  EXPECT_EQ(SumOf({kHuge, 1, 1, 1, -kHuge, 1, 1, 1}), 0);
  EXPECT_EQ(SumOf({1, 1, 1, 1, kHuge, -kHuge, 5}), 9) << "the first four, then the rest";
}

TEST(AddTest, PutsTheSumIntoEveryPart) {
  for (const size_t ranks : {1u, 2u, 3u, 5u}) {
    for (const size_t count : {1u, 15u, 1024u, 2500u}) {
      std::vector<std::vector<float>> values(ranks);
      std::vector<float*> parts;
      for (size_t r = 0; r < ranks; ++r) {
        for (size_t i = 0; i < count; ++i) values[r].push_back(static_cast<float>(i * (r + 1)));
        parts.push_back(values[r].data());
      }
      TreeSumInPlace(parts, 0, count);
      const size_t factor = ranks * (ranks + 1) / 2;
      for (const std::vector<float>& of_rank : values) {
        for (size_t i = 0; i < count; ++i) ASSERT_EQ(of_rank[i], static_cast<float>(i * factor));
      }
    }
  }
}

TEST(AddTest, AddsInPlaceOfAPart) {
  std::vector<float> a = {1, 2}, b = {10, 20};
  const float* const parts[] = {a.data(), b.data()};
  TreeSum(parts, b.data(), 2);
  EXPECT_EQ(b, (std::vector<float>{11, 22}));
}

}  // namespace
}  // namespace trainer
