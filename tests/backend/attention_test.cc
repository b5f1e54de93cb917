#include "trainer/backend/primitives/attention.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "backend/plan_testing.h"
#include "trainer/backend/device/device.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// Computes attention by its definition in double, with all scores in memory.
class DefinedAttention {
 public:
  DefinedAttention(const AttentionDesc& desc, const Values& qkv)
      : d_(desc), qkv_(qkv.ToVector()), p_(Scores()) {
    out_.resize(static_cast<size_t>(d_.batch * d_.length * d_.Channels()));
    ForHeads([&](int64_t n, int64_t h) {
      for (int64_t i = 0; i < d_.length; ++i) {
        Normalize(n, h, i);
        for (int64_t j = 0; j < d_.length; ++j) {
          for (int64_t c = 0; c < d_.size; ++c) {
            out_[Out(n, h, i, c)] += P(n, h, i, j) * At(2, n, h, j, c);
          }
        }
      }
    });
  }

  const std::vector<float>& log_sums() const { return log_sums_; }
  std::vector<float> out() const { return {out_.begin(), out_.end()}; }

  // Returns the gradient of qkv.
  std::vector<float> Backward(const Values& dout) const {
    std::vector<double> to(qkv_.size());
    ForHeads([&](int64_t n, int64_t h) {
      for (int64_t i = 0; i < d_.length; ++i) {
        std::vector<double> dp(static_cast<size_t>(d_.length));
        double mean = 0;
        for (int64_t j = 0; j < d_.length; ++j) {
          for (int64_t c = 0; c < d_.size; ++c) {
            const double d = dout[static_cast<int64_t>(Out(n, h, i, c))];
            dp[static_cast<size_t>(j)] += d * At(2, n, h, j, c);
            to[Packed(2, n, h, j, c)] += P(n, h, i, j) * d;
          }
          mean += P(n, h, i, j) * dp[static_cast<size_t>(j)];
        }
        for (int64_t j = 0; j < d_.length; ++j) {
          const double ds = P(n, h, i, j) * (dp[static_cast<size_t>(j)] - mean) * Scale();
          for (int64_t c = 0; c < d_.size; ++c) {
            to[Packed(0, n, h, i, c)] += ds * At(1, n, h, j, c);
            to[Packed(1, n, h, j, c)] += ds * At(0, n, h, i, c);
          }
        }
      }
    });
    return {to.begin(), to.end()};
  }

 private:
  double Scale() const { return 1 / std::sqrt(static_cast<double>(d_.size)); }
  size_t Packed(int64_t which, int64_t n, int64_t h, int64_t i, int64_t c) const {
    return static_cast<size_t>((((n * d_.length + i) * 3 + which) * d_.heads + h) * d_.size + c);
  }
  size_t Out(int64_t n, int64_t h, int64_t i, int64_t c) const {
    return static_cast<size_t>(((n * d_.length + i) * d_.heads + h) * d_.size + c);
  }
  double At(int64_t which, int64_t n, int64_t h, int64_t i, int64_t c) const {
    return qkv_[Packed(which, n, h, i, c)];
  }
  size_t Place(int64_t n, int64_t h, int64_t i, int64_t j) const {
    return static_cast<size_t>(((n * d_.heads + h) * d_.length + i) * d_.length + j);
  }
  double P(int64_t n, int64_t h, int64_t i, int64_t j) const { return p_[Place(n, h, i, j)]; }

  template <class F>
  void ForHeads(const F& f) const {
    for (int64_t n = 0; n < d_.batch; ++n) {
      for (int64_t h = 0; h < d_.heads; ++h) f(n, h);
    }
  }

  std::vector<double> Scores() const {
    std::vector<double> scores(static_cast<size_t>(d_.batch * d_.heads * d_.length * d_.length));
    ForHeads([&](int64_t n, int64_t h) {
      for (int64_t i = 0; i < d_.length; ++i) {
        for (int64_t j = 0; j < d_.length; ++j) {
          double& score = scores[Place(n, h, i, j)];
          for (int64_t c = 0; c < d_.size; ++c) score += At(0, n, h, i, c) * At(1, n, h, j, c);
          score = d_.causal && j > i ? -INFINITY : score * Scale();
        }
      }
    });
    return scores;
  }

  // Turns a row of scores into probabilities.
  void Normalize(int64_t n, int64_t h, int64_t i) {
    double* const row = p_.data() + Place(n, h, i, 0);
    double top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < d_.length; ++j) top = std::max(top, row[j]);
    for (int64_t j = 0; j < d_.length; ++j) sum += std::exp(row[j] - top);
    for (int64_t j = 0; j < d_.length; ++j) row[j] = std::exp(row[j] - top) / sum;
    log_sums_.push_back(static_cast<float>(top + std::log(sum)));
  }

  AttentionDesc d_;
  std::vector<float> qkv_;
  std::vector<double> p_, out_;
  std::vector<float> log_sums_;  // in the order of the calls of Normalize
};

// Runs a plan and keeps its results. The arrays hold NaN until the plan writes them.
struct AttentionResults {
  Values out, log_sums, dqkv;

  AttentionResults(const AttentionDesc& desc, const Values& qkv, const Values& dout)
      : out(Values::Unset({desc.batch, desc.length, desc.Channels()})),
        log_sums(Values::Unset({desc.batch, desc.heads, desc.length})),
        dqkv(Values::Unset({desc.batch, desc.length, 3 * desc.Channels()})) {
    const auto plan = MetaDevice().NewAttention(desc);
    GuardedBytes scratch(plan->ScratchBytes());
    plan->Forward(qkv.f32(), out.f32(), log_sums.f32(), scratch.span());
    plan->Backward({qkv.f32(), out.f32(), log_sums.f32(), dout.f32()}, dqkv.f32(), scratch.span());
    EXPECT_TRUE(scratch.Intact());
  }
};

class AttentionPlanTest : public testing::TestWithParam<AttentionDesc> {};

TEST_P(AttentionPlanTest, MatchesTheDefinition) {
  const AttentionDesc desc = GetParam();
  const Shape packed{desc.batch, desc.length, 3 * desc.Channels()};
  const Shape plain{desc.batch, desc.length, desc.Channels()};
  const Values qkv = Values::Random(packed, DType::kF32, 1);
  const Values dout = Values::Random(plain, DType::kF32, 2);
  const AttentionResults got(desc, qkv, dout);
  const DefinedAttention want(desc, qkv);
  ExpectClose(got.out, Values::Of(plain, want.out()), 1e-5f, "out");
  ExpectClose(got.log_sums, Values::Of({desc.LogSums()}, want.log_sums()), 1e-5f, "log_sums");
  ExpectClose(got.dqkv, Values::Of(packed, want.Backward(dout)), 1e-5f, "dqkv");
}

// The lengths fill one block or several; a head has up to 64, up to 128, or more elements.
INSTANTIATE_TEST_SUITE_P(
    Of, AttentionPlanTest,
    testing::Values(AttentionDesc{1, 1, 1, 1}, AttentionDesc{2, 5, 3, 4},
                    AttentionDesc{2, 5, 3, 4, true}, AttentionDesc{1, 65, 2, 64},
                    AttentionDesc{2, 97, 1, 20, true}, AttentionDesc{1, 200, 1, 8},
                    AttentionDesc{1, 330, 1, 3}, AttentionDesc{1, 330, 2, 3, true},
                    AttentionDesc{1, 9, 1, 80, true}, AttentionDesc{1, 70, 1, 130}),
    [](const auto& one) {
      const AttentionDesc& d = one.param;
      return Join(d.batch, "x", d.length, "x", d.heads, "x", d.size, d.causal ? "Causal" : "");
    });

TEST(AttentionTest, LargeScoresStayFinite) {
  // The scores reach 1e6, and their maximum rises from one block of keys to the next.
  const AttentionDesc desc{1, 300, 1, 1};
  std::vector<float> numbers;
  for (int i = 0; i < 300; ++i) {
    numbers.insert(numbers.end(), {1000, static_cast<float>(3 * i), static_cast<float>(i)});
  }
  const Values qkv = Values::Of({1, 300, 3}, numbers),
               dout = Values::Random({1, 300, 1}, DType::kF32, 1);
  const AttentionResults got(desc, qkv, dout);
  for (int i = 0; i < 300; ++i) EXPECT_EQ(got.out[i], 299) << i;
  for (int i = 0; i < 900; ++i) EXPECT_TRUE(std::isfinite(got.dqkv[i])) << i;
}

TEST(AttentionTest, ScratchIsLinearInTheLength) {
  const auto bytes = [](int64_t length) {
    return MetaDevice().NewAttention({1, length, 2, 16})->ScratchBytes();
  };
  EXPECT_LT(bytes(1 << 16), 17 * bytes(1 << 12));
}

TEST(AttentionTest, ThreadsDoNotChangeTheNumbers) {
  TRAINER_CPU_ONLY("a GPU has no team of threads");
  const AttentionDesc desc{2, 150, 2, 8, true};
  const Values qkv = Values::Random({2, 150, 48}, DType::kF32, 1);
  const Values dout = Values::Random({2, 150, 16}, DType::kF32, 2);
  const AttentionResults two(desc, qkv, dout);
  MakeCpuDevice(1);  // sets the team of all CPU devices
  const AttentionResults one(desc, qkv, dout);
  MakeCpuDevice(2);
  EXPECT_EQ(one.out.ToVector(), two.out.ToVector());
  EXPECT_EQ(one.dqkv.ToVector(), two.dqkv.ToVector());
}

TEST(AttentionTest, RefusesEmptySequences) {
  EXPECT_THAT(
      [] {
        MetaDevice().NewAttention({1, 0, 1, 1});
      },
      ThrowsMessage<Error>(HasSubstr("attention: the length is 0; it must be at least 1")));
  EXPECT_THAT(
      [] {
        MetaDevice().NewAttention({1, 1, 1, 0});
      },
      ThrowsMessage<Error>(HasSubstr("attention: the size of a head is 0")));
}

TEST(AttentionTest, AGpuRefusesSizesBeyond32Bits) {
  if (!TestsOnGpu()) GTEST_SKIP() << "about kernels";
  constexpr int64_t kTooLong = int64_t{1} << 30;
  const std::string message = "attention on a GPU supports less than 2^30 positions";
  EXPECT_THAT(
      [] {
        MakeTestDevice()->NewAttention({1, kTooLong, 1, 1});
      },
      ThrowsMessage<Error>(HasSubstr(message)));
  EXPECT_THAT(
      [] {
        MakeTestDevice()->NewAttention({1, 1, kTooLong / 64, 22});
      },
      ThrowsMessage<Error>(HasSubstr(message)));
}

}  // namespace
}  // namespace trainer
