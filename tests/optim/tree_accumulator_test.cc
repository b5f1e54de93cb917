#include "tree_accumulator.h"

#include <gtest/gtest.h>

namespace trainer {
namespace {

TEST(TreeSumTest, AddsNeighboursFirst) {
  constexpr float kHuge = 1e30f;
  const float numbers[] = {1, kHuge, -kHuge, 1};
  EXPECT_EQ(TreeSum(numbers), 0) << "from left to right it would be 1";
  const float three[] = {kHuge, -kHuge, 1};
  EXPECT_EQ(TreeSum(three), 1);
}

}  // namespace
}  // namespace trainer
