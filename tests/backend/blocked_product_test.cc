#include "cpu/blocked_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "backend/plan_testing.h"
#include "cpu/simd.h"
#include "support/test_device.h"
#include "trainer/base/text/text.h"
#include "trainer/base/thread/thread_team.h"

namespace trainer::cpu {
namespace {

// The values are small integers, so that every order of the sums gives the same floats.
int Left(int64_t i, int64_t l) { return static_cast<int>((3 * i + 5 * l) % 7) - 3; }
int Right(int64_t l, int64_t j) { return static_cast<int>((2 * l + 7 * j) % 5) - 2; }

struct Case {
  int64_t m, n, k;
  int threads;
};

class BlockedProductTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    TRAINER_CPU_ONLY("it has these loops");
    if (!HasWideLanes()) GTEST_SKIP() << "it needs AVX2";
    SetTeamSize(GetParam().threads);
  }
  ~BlockedProductTest() override { SetTeamSize(1); }

  // Computes C and its row sums from 16-bit matrices if `bf16`. The rows of B are stored in reverse
  // order. `c` and `row_sums` are what the memory holds before.
  void Multiply(bool trans_a, bool split_k, bool bf16, bool accumulate, std::vector<float>* c,
                std::vector<float>* row_sums) const {
    const auto [m, n, k, threads] = GetParam();
    std::vector<float> a, b;
    for (int64_t row = 0; row < (trans_a ? k : m); ++row) {
      for (int64_t column = 0; column < (trans_a ? m : k); ++column) {
        a.push_back(trans_a ? Left(column, row) : Left(row, column));
      }
    }
    for (int64_t l = k - 1; l >= 0; --l) {
      for (int64_t j = 0; j < n; ++j) b.push_back(Right(l, j));
    }
    const DType type = bf16 ? DType::kBF16 : DType::kF32;
    const Values left = Values::Of({m, k}, a, type), right = Values::Of({k, n}, b, type);
    const BlockedProduct product({.m = m, .n = n, .k = k, .trans_a = trans_a, .split_k = split_k});
    GuardedBytes scratch(product.ScratchBytes());
    std::fill(scratch.span().begin(), scratch.span().end(), std::byte{0xFF});
    const StoredMatrix stored_b = {static_cast<ConstTensor>(right).data, type, n,
                                   [last = k - 1](int64_t row) { return last - row; }};
    product.Run({static_cast<ConstTensor>(left).data, type, trans_a ? m : k}, stored_b,
                {.c = c->data(), .accumulate = accumulate, .row_sums = row_sums->data()},
                scratch.span());
    EXPECT_TRUE(scratch.Intact());
  }

  // Computes the product by its definition.
  static std::vector<float> Want(float before) {
    const auto [m, n, k, threads] = GetParam();
    std::vector<float> want;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        int64_t sum = 0;
        for (int64_t l = 0; l < k; ++l) sum += Left(i, l) * Right(l, j);
        want.push_back(before + static_cast<float>(sum));
      }
    }
    return want;
  }
};

TEST_P(BlockedProductTest, MatchesTheDefinition) {
  const auto [m, n, k, threads] = GetParam();
  const std::vector<float> fresh = Want(0), added = Want(100);
  std::vector<float> want_sums;
  for (int64_t i = 0; i < m; ++i) {
    int64_t sum = 10;
    for (int64_t l = 0; l < k; ++l) sum += Left(i, l);
    want_sums.push_back(static_cast<float>(sum));
  }
  for (const bool trans_a : {false, true}) {
    for (const bool bf16 : {false, true}) {
      for (const bool split_k : {false, true}) {
        for (const bool accumulate : {split_k, true}) {
          SCOPED_TRACE(Join("trans_a ", trans_a, ", bf16 ", bf16, ", split_k ", split_k,
                            ", accumulate ", accumulate));
          std::vector<float> c(m * n, 100), row_sums(m, 10);
          Multiply(trans_a, split_k, bf16, accumulate, &c, &row_sums);
          EXPECT_TRUE(c == (accumulate ? added : fresh));
          EXPECT_TRUE(row_sums == want_sums);
        }
      }
    }
  }
}

std::string NameOfCase(const testing::TestParamInfo<Case>& one) {
  return Join(one.param.m, "x", one.param.n, "x", one.param.k, "on", one.param.threads);
}

// Among the sizes: less than a block in each direction, several blocks in each direction, partly
// filled last groups, fewer groups than threads, and an inner length that threads share.
INSTANTIATE_TEST_SUITE_P(Of, BlockedProductTest,
                         testing::Values(Case{1, 1, 1, 1}, Case{16, 16, 192, 2},
                                         Case{17, 33, 193, 3}, Case{300, 70, 400, 2},
                                         Case{290, 190, 385, 8}, Case{20, 40, 3000, 8},
                                         Case{24, 15, 1600, 3}, Case{600, 20, 7, 4}),
                         NameOfCase);

}  // namespace
}  // namespace trainer::cpu
