// The check of NCCL that scripts/gpu/check.sh runs on a GPU fails and is skipped where it should.

#include "cuda/nccl_check.h"

#include <gtest/gtest-spi.h>

#include "cuda/bindings/nccl.h"
#include "cuda/gpu_testing.h"

namespace trainer {
namespace {

using testing::HasSubstr;

class NcclCheckTest : public EmulatedGpu {
 protected:
  // Runs the check and returns what it reports.
  testing::TestPartResultArray& Run() {
    const testing::ScopedFakeTestPartResultReporter reporter(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results_);
    CheckNcclOverOneRank(device());
    return results_;
  }

 private:
  testing::TestPartResultArray results_;
};

TEST_F(NcclCheckTest, Passes) { EXPECT_EQ(Run().size(), 0); }

TEST_F(NcclCheckTest, IsSkippedWithoutTheLibrary) {
  const cuda::Nccl* const table = cuda::GetNccl();
  cuda::SetNccl(nullptr);
  const testing::TestPartResultArray& results = Run();
  cuda::SetNccl(table);
  ASSERT_EQ(results.size(), 1);
  EXPECT_TRUE(results.GetTestPartResult(0).skipped());
  EXPECT_THAT(results.GetTestPartResult(0).message(), HasSubstr("NCCL 2 was not found"));
}

TEST_F(NcclCheckTest, FailsWithTheReasonOfALibraryThatRefuses) {
  emulated_gpu::RefuseLibraryCalls("ncclCommInitRank");
  const testing::TestPartResultArray& results = Run();
  ASSERT_EQ(results.size(), 1);
  EXPECT_TRUE(results.GetTestPartResult(0).fatally_failed());
  EXPECT_THAT(results.GetTestPartResult(0).message(), HasSubstr("ncclCommInitRank failed: "));
}

}  // namespace
}  // namespace trainer
