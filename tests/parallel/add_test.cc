#include "add.h"

#include <gtest/gtest.h>

#include <vector>

namespace trainer {
namespace {

// 3 floats whose sum depends on the order: from left to right it is 0, else 1.
constexpr float kHuge = 1e30f;

TEST(AddTest, AddsFromLeftToRight) {
  const std::vector<float> a(3000, 1.0f), b(3000, kHuge), c(3000, -kHuge);
  std::vector<float> sum(3000, 7.0f);
  const float* const parts[] = {a.data(), b.data(), c.data()};
  AddParts(parts, sum.data(), sum.size());
  EXPECT_EQ(sum, std::vector<float>(3000, 0.0f));
  const float* const other[] = {b.data(), c.data(), a.data()};
  AddParts(other, sum.data(), sum.size());
  EXPECT_EQ(sum, std::vector<float>(3000, 1.0f));
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
      AddInEveryPart(parts, 0, count);
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
  AddParts(parts, b.data(), 2);
  EXPECT_EQ(b, (std::vector<float>{11, 22}));
}

}  // namespace
}  // namespace trainer
