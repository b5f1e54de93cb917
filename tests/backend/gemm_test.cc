#include "trainer/backend/primitives/gemm.h"

#include <gmock/gmock.h>

#include "backend/plan_testing.h"
#include "support/test_device.h"
#include "trainer/backend/device/cpu_device.h"
#include "trainer/backend/device/device.h"
#include "trainer/backend/loops/parallel_for.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

using Sizes = std::tuple<int64_t, int64_t, int64_t>;

class GemmPlanTest : public testing::TestWithParam<std::tuple<Sizes, int, DType>> {
 protected:
  GemmPlanTest() {
    std::tie(desc_.m, desc_.n, desc_.k) = std::get<0>(GetParam());
    const int flags = std::get<1>(GetParam());
    desc_.trans_a = (flags & 1) != 0;
    desc_.trans_b = (flags & 2) != 0;
    desc_.accumulate = (flags & 4) != 0;
    desc_.bias = (flags & 8) != 0;
    desc_.dtype = std::get<2>(GetParam());
  }

  // Computes the product by its definition, in double.
  std::vector<float> Want(const Values& a, const Values& b, const Values& bias,
                          const Values& c) const {
    std::vector<float> want;
    for (int64_t i = 0; i < desc_.m; ++i) {
      for (int64_t j = 0; j < desc_.n; ++j) {
        double sum = desc_.bias ? bias[j] : 0;
        if (desc_.accumulate) sum += c[i * desc_.n + j];
        for (int64_t l = 0; l < desc_.k; ++l) {
          sum += double{a[desc_.trans_a ? l * desc_.m + i : i * desc_.k + l]} *
                 b[desc_.trans_b ? j * desc_.k + l : l * desc_.n + j];
        }
        want.push_back(static_cast<float>(sum));
      }
    }
    return want;
  }

  void Check(DType out_dtype, float bound) {
    desc_.out_dtype = out_dtype;
    const auto plan = MetaDevice().NewGemm(desc_);
    const Values a = Values::Random({desc_.m, desc_.k}, desc_.dtype, 1);
    const Values b = Values::Random({desc_.k, desc_.n}, desc_.dtype, 2);
    const Values bias = Values::Random({desc_.n}, DType::kF32, 3);
    const Shape shape = {desc_.m, desc_.n};
    const Values c =
        desc_.accumulate ? Values::Random(shape, out_dtype, 4) : Values::Unset(shape, out_dtype);
    const Values want = Values::Of(shape, Want(a, b, bias, c));
    GuardedBytes scratch(plan->ScratchBytes());
    plan->Run(static_cast<ConstTensor>(a).data, static_cast<ConstTensor>(b).data,
              desc_.bias ? bias.f32() : nullptr, static_cast<Tensor>(c).data, scratch.span());
    ExpectClose(c, want, bound, plan->kernel().c_str());
    EXPECT_TRUE(scratch.Intact());
  }

  GemmDesc desc_;
};

std::string NameOfCaseGemm(const testing::TestParamInfo<GemmPlanTest::ParamType>& one) {
  const auto& [sizes, flags, type] = one.param;
  const auto& [m, n, k] = sizes;
  return Join(m, "x", n, "x", k, (flags & 1) != 0 ? "TransA" : "", (flags & 2) != 0 ? "TransB" : "",
              (flags & 4) != 0 ? "Added" : "", (flags & 8) != 0 ? "Bias" : "", "_", NameOf(type));
}

TEST_P(GemmPlanTest, MatchesTheDefinition) { Check(DType::kF32, 1e-5f); }

TEST_P(GemmPlanTest, RoundsTo16Bits) {
  desc_.accumulate = false;  // sums are f32
  for (const DType type : StoredTypes()) {
    if (type != DType::kF32) Check(type, BoundOf(type, 1e-5f, 5e-3f));
  }
}

INSTANTIATE_TEST_SUITE_P(Of, GemmPlanTest,
                         testing::Combine(testing::Values(Sizes{1, 1, 1}, Sizes{64, 10, 500},
                                                          Sizes{7, 33, 129}, Sizes{1, 40, 17},
                                                          Sizes{50, 1, 64}, Sizes{100, 96, 200},
                                                          Sizes{70, 50, 190}),
                                          testing::Range(0, 16), testing::ValuesIn(StoredTypes())),
                         NameOfCaseGemm);

TEST(GemmTest, OurLoopsMultiplyWithAvx2WhereTheyAreFaster) {
  TRAINER_CPU_ONLY("it has these kernels");
  if (DetectCpuIsa() != CpuIsa::kAvx2) GTEST_SKIP() << "they are chosen with AVX2 alone";
  const auto device = MakeCpuDevice(2);
  const auto declined = [&](const GemmDesc& desc) {
    const auto plan = device->NewGemm(desc);
    return plan->kernel() == "own product" ? "" : plan->skipped_kernels().at(0);
  };
  EXPECT_EQ(declined({.m = 64, .n = 96, .k = 500}), "");
  EXPECT_EQ(declined({.m = 500, .n = 96, .k = 64, .trans_a = true, .accumulate = true}), "");
  EXPECT_EQ(declined({.m = 64, .n = 96, .k = 50, .bias = true}), "own product: it adds no bias");
  EXPECT_EQ(declined({.m = 64, .n = 96, .k = 50, .trans_b = true}),
            "own product: oneDNN is as fast with a transposed second matrix");
  EXPECT_EQ(declined({.m = 64, .n = 96, .k = 193, .trans_a = true}),
            "own product: oneDNN is as fast with a transposed first matrix of many rows");
  EXPECT_EQ(declined({.m = 15, .n = 96, .k = 50}),
            "own product: there are fewer than 16 rows or columns");
  EXPECT_EQ(declined({.m = 64, .n = 96, .k = 50, .dtype = DType::kBF16}),
            "own product: it supports f32 only");
}

TEST(GemmTest, RefusesEmptyMatrices) {
  EXPECT_THAT([] { MetaDevice().NewGemm({.m = 0, .n = 2, .k = 3}); },
              ThrowsMessage<Error>(HasSubstr("the number of rows is 0; it must be at least 1")));
  EXPECT_THAT([] { MetaDevice().NewGemm({.m = 1, .n = 2, .k = 0}); },
              ThrowsMessage<Error>(HasSubstr("the inner length is 0")));
}

TEST(GemmTest, RefusesASumInto16Bits) {
  EXPECT_THAT(
      [] {
        MetaDevice().NewGemm(
            {.m = 1, .n = 2, .k = 3, .accumulate = true, .out_dtype = DType::kBF16});
      },
      ThrowsMessage<Error>(HasSubstr("accumulate into f32")));
}

}  // namespace
}  // namespace trainer
