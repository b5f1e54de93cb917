// Tests convolutions and products of a GPU with default settings: algorithms are timed and stored
// in a file, and sums may be split. The other tests use a deterministic GPU, where neither happens.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "backend/conv_images.h"
#include "cuda/conv_run.h"
#include "cuda/nccl_check.h"
#include "support/temp_folder.h"
#include "trainer/backend/device/gpu.h"
#include "trainer/backend/primitives/gemm.h"

namespace trainer {
namespace {

using testing::IsEmpty;
using testing::Not;

ConvDesc Fused(ConvDesc desc) {
  desc.relu = true;
  return desc;
}

class UsualGpuTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!TestsOnGpu()) GTEST_SKIP() << "about a GPU alone";
  }
  std::unique_ptr<Device> Make() const {
    return MakeGpuDevice({.algorithm_file = folder_ / "convolutions"});
  }
  std::string File() const {
    std::ifstream file(folder_ / "convolutions");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Returns convolutions of common nets, which only a library computes: of images, also in groups,
  // by channels and without a bias, and of a line and a volume.
  static std::vector<ConvDesc> Usual() {
    return {ImageConv(3, 20, 12, 12, 50, 5),
            ImageConv(2, 3, 43, 43, 24, 11, 4),
            ImageConv(2, 16, 13, 13, 32, 3, 1, 1),
            ImageConv(2, 16, 13, 13, 32, 3, 2, 1),
            ImageConv(2, 32, 8, 8, 64, 1),
            ImageConv(2, 32, 9, 9, 64, 3, 1, 1, 2),
            ImageConv(2, 16, 9, 8, 16, 3, 1, 1, 16),
            WithoutBias(ImageConv(2, 16, 9, 9, 24, 3, 1, 1)),
            Fused(ImageConv(2, 16, 13, 13, 32, 3, 1, 1)),
            {3, 8, 16, 1, {17}, {3}, {2}, {1}, {1}},
            {2, 8, 16, 1, {5, 6, 7}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}}};
  }

 private:
  const TempFolder folder_;
};

TEST_F(UsualGpuTest, MeasuredConvolutionsMatchTheReferenceAndALibraryComputesThem) {
  const auto gpu = Make();
  for (ConvDesc desc : Usual()) {
    for (const DType dtype : StoredTypes()) {
      desc.dtype = dtype;
      const auto plan = gpu->NewConv(desc);
      EXPECT_THAT(plan->skipped_kernels(), IsEmpty()) << plan->kernel();
      const ConvRun run(desc);
      EXPECT_LE(ConvRun::Difference(run.On(*gpu), run.ByReference()), BoundOf(dtype, 2e-5f, 2e-2f))
          << desc.InShape().ToString() << NameOf(dtype) << ' ' << plan->kernel();
    }
  }
}

// Both runs read the same file, so they have the same algorithms.
TEST_F(UsualGpuTest, ALaterRunUsesTheStoredAlgorithms) {
  std::vector<std::string> first, second;
  for (const ConvDesc& desc : Usual()) first.push_back(Make()->NewConv(desc)->kernel());
  const std::string stored = File();
  EXPECT_THAT(stored, Not(IsEmpty()));
  for (const ConvDesc& desc : Usual()) second.push_back(Make()->NewConv(desc)->kernel());
  EXPECT_EQ(second, first);
  EXPECT_EQ(File(), stored);
}

// The inner dimension is long and the result small, so the library splits the sum over blocks,
// which add to the result.
TEST_F(UsualGpuTest, SplitSumsAreAddedToTheResult) {
  const auto gpu = Make();
  const GemmDesc desc = {.m = 16, .n = 24, .k = 20000, .trans_a = true, .accumulate = true};
  const auto plan = gpu->NewGemm(desc);
  EXPECT_THAT(plan->skipped_kernels(), IsEmpty());
  const std::vector<float> a(static_cast<size_t>(desc.m * desc.k), 0.5f);
  const std::vector<float> b(static_cast<size_t>(desc.n * desc.k), 0.25f);
  const OnDevice<float> left(*gpu, a), right(*gpu, b);
  const OnDevice<float> sum(*gpu, std::vector<float>(static_cast<size_t>(desc.m * desc.n), 3.0f));
  const OnDevice<std::byte> scratch(*gpu, plan->ScratchBytes());
  plan->Run(left.data(), right.data(), nullptr, sum.data(), scratch.span());
  plan->Run(left.data(), right.data(), nullptr, sum.data(), scratch.span());
  EXPECT_THAT(sum.Read(), testing::Each(3.0f + 2 * 0.125f * 20000));
}

TEST_F(UsualGpuTest, NcclSumsOverOneRank) { CheckNcclOverOneRank(*Make()); }

}  // namespace
}  // namespace trainer
