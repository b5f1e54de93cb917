#include <thread>

#include "cuda/gpu_testing.h"

namespace trainer {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::SizeIs;

class CudaDeviceTest : public EmulatedGpu {};

TEST_F(CudaDeviceTest, DescribesItself) {
  EXPECT_EQ(device().Describe(), "Emulated GPU, 1 GiB, compute 8.0");
  EXPECT_EQ(device().kind(), DeviceKind::kCuda);
}

// A build without CUDA registers no functions. Its message names the flag that the pages describe.
TEST_F(CudaDeviceTest, ABuildWithoutCudaNamesTheFlagForIt) {
  const GpuBackend built = RequireGpuBackend();
  SetGpuBackend({});
  const auto [code, text] = ErrorOf([] { MakeGpuDevice({}); });
  const std::vector<std::string> missing = FindGpus().missing;
  SetGpuBackend(built);
  EXPECT_EQ(code, ErrorCode::kUnavailable);
  EXPECT_EQ(
      text,
      "this build has no CUDA support; build it with -DTRAINER_CUDA=ON on a machine with nvcc");
  EXPECT_THAT(missing, ElementsAre(text));
}

TEST_F(CudaDeviceTest, CopiesThereAndBack) {
  const OnDevice<float> memory(device(), Counting(1000));
  EXPECT_EQ(memory.Read(), Counting(1000));
}

TEST_F(CudaDeviceTest, FillsBytes) {
  const OnDevice<uint32_t> memory(device(), 7);
  device().Memset(memory.data(), 0x12, 4 * sizeof(uint32_t));
  EXPECT_THAT(memory.Read(),
              ElementsAre(0x12121212u, 0x12121212u, 0x12121212u, 0x12121212u, 0u, 0u, 0u));
}

TEST_F(CudaDeviceTest, GivesEmptyMemoryAnAddress) {
  void* memory = device().Allocate(0);
  EXPECT_NE(memory, nullptr);
  device().CopyToDevice(memory, nullptr, 0);
  device().Memset(memory, 0, 0);
  device().Free(memory);
  device().Free(nullptr);
}

TEST_F(CudaDeviceTest, TheHostMayChangeWhatItHasCopied) {
  std::vector<float> pageable = Counting(100);
  std::pmr::vector<float> locked(pageable.begin(), pageable.end(), &device().PinnedMemory());
  const OnDevice<float> first(device(), 100), second(device(), 100);
  first.Write(pageable);
  second.Write(locked);
  std::ranges::fill(pageable, -1.0f);
  std::ranges::fill(locked, -1.0f);
  EXPECT_EQ(first.Read(), Counting(100));
  EXPECT_EQ(second.Read(), Counting(100));
}

TEST_F(CudaDeviceTest, GivesAllBackWhenItEnds) {
  void* locked = device().PinnedMemory().allocate(5000);
  device().PinnedMemory().deallocate(locked, 5000);
  const auto queue = device().NewCopyStream();
  const OnDevice<float> memory(device(), 10);
  EXPECT_GT(emulated_gpu::AllocatedBytes(), 0u);
  // The fixture checks for leaks.
}

TEST_F(CudaDeviceTest, TellsWhatIsFree) {
  const size_t before = device().AvailableBytes();
  void* memory = device().Allocate(size_t{100} << 20);
  EXPECT_LE(device().AvailableBytes(), before - (size_t{100} << 20));
  device().Free(memory);
}

TEST_F(CudaDeviceTest, GivesKeptHostMemoryOutAgain) {
  std::pmr::memory_resource& memory = device().PinnedMemory();
  void* first = memory.allocate(100'000);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
  memory.deallocate(first, 100'000);
  const int64_t before = emulated_gpu::Count().host_allocations;
  void* same = memory.allocate(90'000);
  EXPECT_EQ(same, first);
  void* other = memory.allocate(90'000);
  EXPECT_NE(other, first);
  EXPECT_EQ(emulated_gpu::Count().host_allocations, before + 1);
  memory.deallocate(same, 90'000);
  memory.deallocate(other, 90'000);
}

TEST_F(CudaDeviceTest, GivesHostMemoryToAnyThread) {
  std::pmr::memory_resource& memory = device().PinnedMemory();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&memory, t] {
      for (size_t i = 1; i < 50; ++i) {
        std::pmr::vector<int> mine(1000 * i, t, &memory);
        EXPECT_THAT(mine, Each(t));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(CudaDeviceTest, CopiesAheadOfComputations) {
  const auto queue = device().NewCopyStream();
  std::pmr::vector<float> batch(1000, 0.0f, &device().PinnedMemory());
  const OnDevice<float> from(device(), 1000), to(device(), 1000);
  for (int pass = 0; pass < 5; ++pass) {
    queue->WaitForCopies();
    std::ranges::fill(batch, static_cast<float>(pass));
    queue->CopiesWaitForCompute();
    queue->CopyToDevice(from.data(), batch.data(), 1000 * sizeof(float));
    queue->ComputeWaitsForCopies();
    device().Copy(BlockCopy(sizeof(float), 1, 1000, 0, 0), from.data(), to.data());
    EXPECT_THAT(to.Read(), Each(static_cast<float>(pass)));
  }
}

TEST_F(CudaDeviceTest, CopiesWaitForComputationsThatReadTheirTarget) {
  const auto queue = device().NewCopyStream();
  std::pmr::vector<float> batch(1000, 7.0f, &device().PinnedMemory());
  const OnDevice<float> from(device(), Counting(1000)), to(device(), 1000);
  device().Copy(BlockCopy(sizeof(float), 1, 1000, 0, 0), from.data(), to.data());
  queue->CopiesWaitForCompute();
  queue->CopyToDevice(from.data(), batch.data(), 1000 * sizeof(float));
  queue->WaitForCopies();
  EXPECT_EQ(to.Read(), Counting(1000));
  EXPECT_THAT(from.Read(), Each(7.0f));
}

TEST_F(CudaDeviceTest, ReadsLater) {
  const auto read = device().NewReadback();
  read->Wait();
  std::pmr::vector<float> host(100, 0.0f, &device().PinnedMemory());
  const OnDevice<float> memory(device(), Counting(100));
  read->Start(host.data(), memory.data(), 100 * sizeof(float));
  device().Memset(memory.data(), 0, 100 * sizeof(float));
  read->Wait();
  EXPECT_EQ(std::vector<float>(host.begin(), host.end()), Counting(100));
}

TEST_F(CudaDeviceTest, EveryThreadUsesTheDevicesOwnGpu) {
  emulated_gpu::Reset({.devices = {{}, {.name = "Second"}}});
  const auto second = MakeGpuDevice({.id = 1});
  EXPECT_EQ(second->Describe(), "Second, 1 GiB, compute 8.0");
  std::thread([&] {
    const OnDevice<float> memory(*second, Counting(5000));
    EXPECT_EQ(emulated_gpu::AllocatedBytes(0), 0u);
    EXPECT_GE(emulated_gpu::AllocatedBytes(1), 20'000u);
    const OnDevice<float> copy(*second, 5000);
    second->Copy(BlockCopy(sizeof(float), 1, 5000, 0, 0), memory.data(), copy.data());
    EXPECT_EQ(copy.Read(), Counting(5000));
  }).join();
}

TEST_F(CudaDeviceTest, FindsAllGpus) {
  emulated_gpu::Reset({.devices = {{}, {.name = "Second", .major = 9}}});
  const GpuSupport found = FindGpus();
  EXPECT_TRUE(found.built);
  EXPECT_EQ(found.driver, 13000);
  ASSERT_THAT(found.gpus, SizeIs(2));
  EXPECT_EQ(found.gpus[1].name, "Second");
  EXPECT_EQ(found.gpus[1].major, 9);
  EXPECT_EQ(found.gpus[1].memory_bytes, size_t{1} << 30);
  EXPECT_GT(found.gpus[1].free_bytes, 0u);
  EXPECT_GT(found.gpus[1].clock_mhz, 0);
}

}  // namespace
}  // namespace trainer
