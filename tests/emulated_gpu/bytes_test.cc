// Counts of the bytes that work reads and writes.

#include <memory>

#include "emulated_gpu/gpu_testing.h"

namespace emulated_gpu {
namespace {

using testing::Each;

constexpr size_t kPage = 4096, kInts = 8 * kPage / sizeof(int);

class BytesTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    in_ = std::make_unique<OnDevice<int>>(kInts);
    out_ = std::make_unique<OnDevice<int>>(kInts);
    Cuda().MemsetAsync(in_->data(), 0, in_->bytes(), stream_);
    Cuda().StreamSynchronize(stream_);
    CountBytes(true);
    ResetCounters();
  }
  void TearDown() override {
    in_ = nullptr;
    out_ = nullptr;
    GpuTest::TearDown();
  }
  // Runs an AddKernel on the first n numbers and returns the counters.
  Counters CountAdd(size_t n, int* out) {
    Start(stream_, AddKernel, dim3(static_cast<unsigned>(n + 255) / 256), 256, in_->data(), out,
          static_cast<int>(n), 1);
    EXPECT_EQ(Cuda().StreamSynchronize(stream_), 0);
    return Count();
  }

  std::unique_ptr<OnDevice<int>> in_, out_;
};

TEST_F(BytesTest, AKernelCountsThePagesThatItReadsAndWrites) {
  const Counters counts = CountAdd(kInts, out_->data());
  EXPECT_EQ(counts.read_bytes, 8 * int64_t{kPage});
  EXPECT_EQ(counts.written_bytes, 8 * int64_t{kPage});
  EXPECT_THAT(out_->Values(), Each(1));
}

TEST_F(BytesTest, PagesThatItDoesNotTouchDoNotCount) {
  const Counters counts = CountAdd(kInts / 4 + 1, out_->data());
  EXPECT_EQ(counts.read_bytes, 3 * int64_t{kPage});
  EXPECT_EQ(counts.written_bytes, 3 * int64_t{kPage});
}

TEST_F(BytesTest, InPlaceAPageIsReadAndWritten) {
  const Counters counts = CountAdd(kInts, in_->data());
  EXPECT_EQ(counts.read_bytes, 8 * int64_t{kPage});
  EXPECT_EQ(counts.written_bytes, 8 * int64_t{kPage});
  EXPECT_THAT(in_->Values(), Each(1));
}

TEST_F(BytesTest, EachKernelCountsAnew) {
  CountAdd(kInts, out_->data());
  EXPECT_EQ(CountAdd(kInts, out_->data()).read_bytes, 16 * int64_t{kPage});
}

TEST_F(BytesTest, CopiesAndFillsCountTheirOperands) {
  const PageLocked<int> host(100);
  Cuda().MemcpyAsync(out_->data(), in_->data(), 100, cuda::kDeviceToDevice, stream_);
  Cuda().MemcpyAsync(host.data(), in_->data(), 30, cuda::kDeviceToHost, stream_);
  Cuda().MemcpyAsync(out_->data(), host.data(), 7, cuda::kHostToDevice, stream_);
  Cuda().MemsetAsync(out_->data(), 0, 1000, stream_);
  Cuda().StreamSynchronize(stream_);
  EXPECT_EQ(Count().read_bytes, 130);
  EXPECT_EQ(Count().written_bytes, 1107);
}

TEST_F(BytesTest, KernelsAreCountedOnlyWhereThatIsAskedFor) {
  CountBytes(false);
  EXPECT_EQ(CountAdd(kInts, out_->data()).read_bytes, 0);
}

}  // namespace
}  // namespace emulated_gpu
