// Tests the calls to cuBLASLt, and the fallback where it declines. backend_test checks on a GPU
// that every product is right.

#include <random>

#include "cuda/bindings/cublas_lt.h"
#include "cuda/gpu_testing.h"
#include "trainer/backend/memory/scratch_layout.h"

namespace trainer {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CublasTest : public EmulatedGpu {
 protected:
  static std::vector<float> Random(int64_t count, uint32_t seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = uniform(random);
    return values;
  }

  // Returns a (m, k) times b (k, n). The operands begin `gap` floats after the start of an
  // allocation.
  static std::vector<float> Multiply(const Device& gpu, GemmDesc desc, size_t gap = 0) {
    const auto plan = gpu.NewGemm(desc);
    const OnDevice<float> a(gpu, Random(static_cast<int64_t>(gap) + desc.m * desc.k, 1));
    const OnDevice<float> b(gpu, Random(static_cast<int64_t>(gap) + desc.k * desc.n, 2));
    const OnDevice<float> bias(gpu, Random(static_cast<int64_t>(gap) + desc.n, 3));
    const OnDevice<float> c(gpu, gap + static_cast<size_t>(desc.m * desc.n));
    // A memory plan aligns scratch memory to kMemoryAlign and no more.
    const OnDevice<std::byte> scratch(gpu, plan->ScratchBytes() + kMemoryAlign);
    plan->Run(a.data() + gap, b.data() + gap, bias.data() + gap, c.data() + gap,
              scratch.span().subspan(kMemoryAlign));
    const std::vector<float> all = c.Read();
    return {all.begin() + static_cast<std::ptrdiff_t>(gap), all.end()};
  }
  static std::vector<float> Wanted(const GemmDesc& d, size_t gap = 0) {
    const auto start = static_cast<int64_t>(gap);
    const std::vector<float> a = Random(start + d.m * d.k, 1), b = Random(start + d.k * d.n, 2);
    const std::vector<float> bias = Random(start + d.n, 3);
    std::vector<float> want;
    for (int64_t i = 0; i < d.m; ++i) {
      for (int64_t j = 0; j < d.n; ++j) {
        double sum = d.bias ? bias[gap + j] : 0;
        for (int64_t l = 0; l < d.k; ++l) {
          sum += double{a[gap + i * d.k + l]} * b[gap + l * d.n + j];
        }
        want.push_back(static_cast<float>(sum));
      }
    }
    return want;
  }
  static float Difference(const std::vector<float>& got, const std::vector<float>& want) {
    float most = 0;
    for (size_t i = 0; i < want.size(); ++i) most = std::max(most, std::abs(got[i] - want[i]));
    return most;
  }
};

const GemmDesc kSome = {.m = 20, .n = 24, .k = 36, .bias = true};

TEST_F(CublasTest, ComputesProducts) {
  const auto plan = device().NewGemm(kSome);
  EXPECT_EQ(plan->kernel(), "cublasLt");
  EXPECT_THAT(plan->skipped_kernels(), IsEmpty());
  EXPECT_LE(Difference(Multiply(device(), kSome), Wanted(kSome)), 1e-5f);
}

TEST_F(CublasTest, OperandsMayLieAnywhere) {
  for (const size_t gap : {1, 2, 3, 5}) {
    EXPECT_LE(Difference(Multiply(device(), kSome, gap), Wanted(kSome, gap)), 1e-5f);
  }
}

// cuBLASLt takes no preference for the alignment of a bias, so it gets only aligned ones.
TEST_F(CublasTest, AnOwnKernelAddsABiasThatIsNotAligned) {
  const auto launches = [&](size_t gap) {
    emulated_gpu::ResetCounters();
    (void)Multiply(device(), kSome, gap);
    return emulated_gpu::Count().launches;
  };
  (void)device();
  const int64_t aligned = launches(0);
  EXPECT_EQ(launches(4), aligned);
  for (const size_t gap : {1, 2, 3}) EXPECT_EQ(launches(gap), aligned + 1) << gap;
}

TEST_F(CublasTest, ABiasOn16BitsComesBeforeTheProduct) {
  GemmDesc desc = kSome;
  for (const DType type : {DType::kBF16, DType::kF16}) {
    desc.dtype = desc.out_dtype = type;
    EXPECT_EQ(device().NewGemm(desc)->kernel(), "cublasLt, after the bias");
  }
}

TEST_F(CublasTest, DeterministicResultsRepeat) {
  const auto gpu = MakeGpuDevice({.deterministic = true});
  const std::vector<float> first = Multiply(*gpu, kSome);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Multiply(*gpu, kSome), first);
}

TEST_F(CublasTest, NumbersAreRoundedOnlyWhereTheUserAllowsIt) {
  const auto rounding = MakeGpuDevice({.tf32 = true});
  const float rounded = Difference(Multiply(*rounding, kSome), Wanted(kSome));
  EXPECT_GT(rounded, 1e-5f);
  EXPECT_LE(rounded, 2e-2f);
}

TEST_F(CublasTest, WhatItDeclinesOwnKernelsCompute) {
  emulated_gpu::RefuseLibraryCalls("cublasLtMatmulAlgoGetHeuristic");
  const auto plan = device().NewGemm(kSome);
  EXPECT_EQ(plan->kernel(), "loops");
  EXPECT_THAT(plan->skipped_kernels(), ElementsAre("cublasLt: it has no algorithm for this"));
  EXPECT_LE(Difference(Multiply(device(), kSome), Wanted(kSome)), 1e-5f);
}

TEST_F(CublasTest, WithoutTheLibraryOwnKernelsCompute) {
  const cuda::CublasLt* before = cuda::GetCublasLt();
  cuda::SetCublasLt(nullptr);
  EXPECT_THAT(device().NewGemm(kSome)->skipped_kernels(),
              ElementsAre("cublasLt: the library was not found"));
  EXPECT_LE(Difference(Multiply(device(), kSome), Wanted(kSome)), 1e-5f);
  EXPECT_THAT(FindGpus().missing, Contains(HasSubstr("cuBLASLt 12 or 13 was not found")));
  cuda::SetCublasLt(before);
}

}  // namespace
}  // namespace trainer
