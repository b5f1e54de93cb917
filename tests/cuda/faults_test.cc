// Error messages when a GPU is not available or fails.

#include "cuda/bindings/runtime.h"
#include "cuda/gpu_testing.h"
#include "support/scoped.h"
#include "trainer/base/error/error.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

using emulated_gpu::CallKind;

class GpuFaultTest : public EmulatedGpu {
 protected:
  // Returns the error that MakeGpuDevice throws, as "69: the message".
  static std::string Refusal(int id = 0) {
    return Thrown([&] { MakeGpuDevice({.id = id}); });
  }
  template <class F>
  static std::string Thrown(const F& f) {
    const auto [code, message] = ErrorOf(f);
    return std::to_string(static_cast<int>(code)) + ": " + message;
  }
};

TEST_F(GpuFaultTest, WithoutADriver) {
  emulated_gpu::Reset({.driver = 0});
  EXPECT_EQ(
      Refusal(),
      "69: no driver for NVIDIA GPUs was found (libcuda.so.1); install one, or run on the CPU");
  EXPECT_THAT(FindGpus().missing, testing::Contains(HasSubstr("no driver for NVIDIA GPUs")));
}

TEST_F(GpuFaultTest, WithAnOldDriver) {
  emulated_gpu::Reset({.driver = 12020});
  EXPECT_EQ(Refusal(),
            "69: the GPU driver of this machine supports CUDA 12.2, but this program needs 13.0; "
            "update the driver, build the program with an older CUDA, or run on the CPU");
}

TEST_F(GpuFaultTest, WithoutAGpu) {
  emulated_gpu::Reset({.devices = {}});
  EXPECT_THAT(Refusal(), HasSubstr("69: the driver finds no GPU; check that 'nvidia-smi' shows"));
}

TEST_F(GpuFaultTest, WithGpusHiddenByTheEnvironment) {
  emulated_gpu::Reset({.devices = {}});
  const ScopedEnvironment visible("CUDA_VISIBLE_DEVICES", "7");
  EXPECT_THAT(Refusal(), StartsWith("69: CUDA sees no GPU, because CUDA_VISIBLE_DEVICES is '7'"));
}

TEST_F(GpuFaultTest, AWrongNumberListsThoseThereAre) {
  emulated_gpu::Reset({.devices = {{}, {.name = "Second", .memory_bytes = size_t{2} << 30}}});
  for (const int id : {2, -1}) {
    EXPECT_THAT(Refusal(id), AllOf(HasSubstr("69: there is no GPU " + std::to_string(id)),
                                   HasSubstr("0: Emulated GPU, 1 GiB, "),
                                   HasSubstr("1: Second, 2 GiB, "), EndsWith(" GiB free")));
  }
}

// The emulated CUDA runtime, with calls that a test may replace.
class ChangedRuntime {
 public:
  ChangedRuntime() : before_(cuda::GetRuntime()), table(*before_) { cuda::SetRuntime(&table); }
  ~ChangedRuntime() { cuda::SetRuntime(before_); }

 private:
  const cuda::Runtime* before_;

 public:
  cuda::Runtime table;
};

TEST_F(GpuFaultTest, InUseByAnother) {
  ChangedRuntime runtime;
  runtime.table.MemGetInfo = [](size_t*, size_t*) { return cuda::kErrorDevicesUnavailable; };
  EXPECT_EQ(Refusal(),
            "69: GPU 0 (Emulated GPU) is busy, or another process has exclusive use of it; choose "
            "another GPU, or wait ('nvidia-smi' shows the processes)");
}

TEST_F(GpuFaultTest, WithoutKernelsForIt) {
  emulated_gpu::InjectError(CallKind::kLaunch, 0, cuda::kErrorNoKernelImageForDevice);
  const OnDevice<float> from(device(), 100), to(device(), 100);
  EXPECT_THAT(Thrown([&] {
                device().Copy(BlockCopy(sizeof(float), 10, 5, 10, 10), from.data(), to.data());
              }),
              AllOf(HasSubstr("69: GPU 0 (Emulated GPU) cannot run this program's kernels"),
                    HasSubstr("-DCMAKE_CUDA_ARCHITECTURES=")));
}

TEST_F(GpuFaultTest, OutOfMemoryTellsNeedAndRest) {
  EXPECT_THAT(Thrown([&] { device().Allocate(size_t{5} << 30); }),
              AllOf(HasSubstr("81: GPU 0 (Emulated GPU) cannot allocate 5120 MiB (5368709120 "
                              "bytes) of memory: "),
                    HasSubstr(" of 1024 MiB are free; lower batch_size")));
  const OnDevice<float> works(device(), Counting(10));
  EXPECT_EQ(works.Read(), Counting(10));
}

TEST_F(GpuFaultTest, OutOfPageLockedMemory) {
  emulated_gpu::InjectError(CallKind::kHostAlloc, 0, cuda::kErrorMemoryAllocation);
  device();
  EXPECT_THAT(Thrown([&] { (void)device().PinnedMemory().allocate(size_t{64} << 20); }),
              HasSubstr("81: cannot allocate 64 MiB of page-locked host memory (67108864 bytes)"));
}

TEST_F(GpuFaultTest, ALostGpuIsOneSentenceWhateverIsCalledNext) {
  const OnDevice<float> memory(device(), Counting(100));
  emulated_gpu::InjectBreakdown(CallKind::kCopy, 0, cuda::kErrorIllegalAddress);
  device().Memset(memory.data(), 0, 4);
  const std::string first = Thrown([&] { device().Synchronize(); });
  EXPECT_THAT(first,
              AllOf(HasSubstr("69: GPU 0 (Emulated GPU) failed while waiting for it "
                              "(cudaStreamSynchronize) or before: cudaErrorIllegalAddress: "),
                    HasSubstr("--resume=auto"), Not(HasSubstr("\n"))));
  EXPECT_EQ(Thrown([&] { device().Synchronize(); }), first);
  EXPECT_EQ(Thrown([&] { device().Memset(memory.data(), 0, 4); }), first);
  EXPECT_EQ(Thrown([&] { device().Allocate(4); }), first);
  EXPECT_EQ(Thrown([&] { device().AvailableBytes(); }), first);
  EXPECT_EQ(Thrown([&] { (void)device().NewCopyStream(); }), first);
}

TEST_F(GpuFaultTest, DamagedMemorySaysSo) {
  device();
  emulated_gpu::SetStickyError(cuda::kErrorEccUncorrectable);
  EXPECT_THAT(Thrown([&] { device().Synchronize(); }),
              AllOf(HasSubstr("69: GPU 0"), HasSubstr("Its memory has an error"),
                    HasSubstr("another GPU")));
}

TEST_F(GpuFaultTest, OneErrorAloneIsNotALoss) {
  const OnDevice<float> memory(device(), Counting(100));
  emulated_gpu::InjectError(CallKind::kCopy, 0, cuda::kErrorInvalidValue);
  EXPECT_THAT(Thrown([&] { device().Memset(memory.data(), 0, 4); }),
              HasSubstr("70: GPU 0 (Emulated GPU) refused filling its memory (cudaMemsetAsync) "
                        "(cudaErrorInvalidValue: "));
  EXPECT_EQ(memory.Read(), Counting(100));
}

TEST_F(GpuFaultTest, ADeviceThatCannotBeMadeLeavesNothing) {
  for (const CallKind kind : {CallKind::kCreate, CallKind::kMalloc}) {
    emulated_gpu::Reset();
    emulated_gpu::InjectError(kind, 0, cuda::kErrorMemoryAllocation);
    EXPECT_THAT(Refusal(), HasSubstr("81: GPU 0"));
    EXPECT_THAT(emulated_gpu::Leaks(), testing::IsEmpty());
  }
}

}  // namespace
}  // namespace trainer
