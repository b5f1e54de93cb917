#include <cmath>
#include <numeric>

#include "emulated_gpu/gpu_testing.h"

namespace emulated_gpu {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::Truly;

using MemoryTest = GpuTest;
using MemoryDeathTest = GpuTest;

// Returns the last problem, or "".
std::string LastProblem() { return Problems().empty() ? "" : Problems().back(); }

TEST_F(MemoryTest, NewMemoryIsNaN) {
  const OnDevice<float> device(1000);
  EXPECT_THAT(device.Values(), Each(Truly([](float x) { return std::isnan(x); })));
  const PageLocked<float> host(10);
  EXPECT_TRUE(std::isnan(host[0]) && std::isnan(host[9]));
}

TEST_F(MemoryTest, AddressesAreAlignedAndNeverComeBack) {
  void *first = nullptr, *second = nullptr;
  ASSERT_EQ(Cuda().Malloc(&first, 1000), 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 256, 0u);
  ASSERT_EQ(Cuda().Free(first), 0);
  ASSERT_EQ(Cuda().Malloc(&second, 1000), 0);
  EXPECT_NE(first, second);
  ASSERT_EQ(Cuda().Free(second), 0);
}

TEST_F(MemoryDeathTest, TheHostDiesWhereItTouchesADevicesMemory) {
  const OnDevice<int> device(100);
  Cuda().MemsetAsync(device.data(), 0, device.bytes(), stream_);
  Cuda().StreamSynchronize(stream_);
  EXPECT_DEATH(device.data()[3] = 1,
               "host code touched device memory at 0x.*: 12 bytes into an allocation of 400 bytes");
  EXPECT_DEATH(std::printf("%d", device.data()[0]), "host code touched device memory");
}

// Runs the kernel on n numbers, which need not belong to the device.
void Fill(cuda::Stream stream, int* numbers, int n) {
  Start(stream, FillKernel<int>, static_cast<unsigned>(n + 127) / 128, 128, numbers, n, 7);
  Cuda().StreamSynchronize(stream);
}

TEST_F(MemoryDeathTest, AKernelDiesWhereItLeavesItsAllocations) {
  const OnDevice<int> device(100);
  EXPECT_DEATH(Fill(stream_, device.data() + 64, 200),
               "device code, block \\(.*\\), thread \\(.*\\) touched|AddressSanitizer");
}

TEST_F(MemoryDeathTest, AKernelDiesWhereItUsesFreedMemory) {
  void* freed = nullptr;
  Cuda().Malloc(&freed, 100);
  Cuda().Free(freed);
  EXPECT_DEATH(Fill(stream_, static_cast<int*>(freed), 1), "device code.* touched device memory");
}

#ifndef __SANITIZE_ADDRESS__  // AddressSanitizer finds it at once
TEST_F(MemoryTest, WhatIsWrittenAroundAnAllocationIsFoundWhenItIsFreed) {
  for (const int at : {-1, 10}) {
    ClearProblems();
    {
      const OnDevice<int> device(10);
      Start(stream_, FillKernel<int>, 1, 1, device.data() + at, 1, 7);
    }
    EXPECT_THAT(LastProblem(), HasSubstr(at < 0 ? "wrote before the begin of an allocation"
                                                : "wrote behind the end of an allocation"));
  }
}
#endif

TEST_F(MemoryTest, CopiesThereAndBack) {
  const OnDevice<int> a(50), b(50);
  std::vector<int> from(50), to(50);
  std::iota(from.begin(), from.end(), 0);
  EXPECT_EQ(Cuda().MemcpyAsync(a.data(), from.data(), 200, cuda::kHostToDevice, stream_), 0);
  EXPECT_EQ(Cuda().MemcpyAsync(b.data(), a.data(), 200, cuda::kDeviceToDevice, stream_), 0);
  EXPECT_EQ(Cuda().MemcpyAsync(to.data(), b.data(), 200, cuda::kDeviceToHost, stream_), 0);
  EXPECT_EQ(from, to);
  EXPECT_EQ(Count().copies, 3);
  EXPECT_EQ(Count().copied_bytes, 600);
  EXPECT_EQ(Count().synchronizations, 1);  // for the copy to pageable memory
  EXPECT_THAT(Problems(), IsEmpty());
}

TEST_F(MemoryTest, PageableMemoryIsReadByTheCallPageLockedMemoryLater) {
  const OnDevice<int> device(2);
  int pageable = 1;
  const PageLocked<int> locked(1);
  locked[0] = 1;
  Cuda().MemcpyAsync(device.data(), &pageable, 4, cuda::kHostToDevice, stream_);
  Cuda().MemcpyAsync(device.data() + 1, locked.data(), 4, cuda::kHostToDevice, stream_);
  pageable = locked[0] = 2;
  Cuda().StreamSynchronize(stream_);
  EXPECT_THAT(device.Values(), ElementsAre(1, 2));
}

TEST_F(MemoryTest, PageLockedMemoryIsWrittenLate) {
  const OnDevice<int> device(1);
  const PageLocked<int> locked(1);
  locked[0] = 5;
  Cuda().MemsetAsync(device.data(), 0, 4, stream_);
  Cuda().MemcpyAsync(locked.data(), device.data(), 4, cuda::kDeviceToHost, stream_);
  EXPECT_EQ(locked[0], 5);
  Cuda().StreamSynchronize(stream_);
  EXPECT_EQ(locked[0], 0);
}

TEST_F(MemoryTest, RefusesCopiesOutsideOfAllocationsAndOfTheWrongKind) {
  const OnDevice<char> device(100);
  const PageLocked<char> locked(50);
  std::vector<char> host(200);
  const auto copy = [&](void* to, const void* from, size_t bytes, int kind) {
    return Cuda().MemcpyAsync(to, from, bytes, kind, stream_);
  };
  EXPECT_EQ(copy(device.data(), host.data(), 101, cuda::kHostToDevice), 1);
  EXPECT_THAT(LastProblem(), HasSubstr("101 bytes at offset 0 of an allocation of 100"));
  EXPECT_EQ(copy(device.data() + 60, host.data(), 50, cuda::kHostToDevice), 1);
  EXPECT_EQ(copy(host.data(), device.data() + 1, 100, cuda::kDeviceToHost), 1);
  EXPECT_EQ(copy(locked.data(), device.data(), 51, cuda::kDeviceToHost), 1);
  EXPECT_THAT(LastProblem(), HasSubstr("page-locked memory of 50"));
  EXPECT_EQ(copy(device.data(), host.data(), 10, cuda::kDeviceToDevice), 1);
  EXPECT_THAT(LastProblem(), HasSubstr("the source of cudaMemcpyAsync: not memory of a device"));
  EXPECT_EQ(copy(host.data(), host.data(), 10, cuda::kHostToDevice), 1);
  EXPECT_EQ(copy(device.data(), device.data(), 10, cuda::kDeviceToHost), 1);
  EXPECT_THAT(LastProblem(), HasSubstr("memory of a device, not of the host"));
  EXPECT_EQ(copy(device.data(), host.data(), 10, 4), 21);
  EXPECT_EQ(Cuda().MemsetAsync(device.data() + 99, 0, 2, stream_), 1);
  EXPECT_EQ(Cuda().MemsetAsync(host.data(), 0, 2, stream_), 1);
  EXPECT_THAT(Problems(), SizeIs(10));
  EXPECT_EQ(Count().copies, 0);
  EXPECT_EQ(copy(device.data() + 50, host.data(), 50, cuda::kHostToDevice), 0);
}

// A copy to memory that is not page-locked waits; a copy to registered memory runs later.
TEST_F(MemoryTest, RegistersMemoryThatComesFromElsewhere) {
  std::vector<int> host(64);
  const OnDevice<int> device(64);
  ASSERT_EQ(Cuda().HostRegister(host.data(), 256, cuda::kHostRegisterPortable), 0);
  EXPECT_EQ(Cuda().HostRegister(host.data() + 60, 4, 0), 1);
  EXPECT_EQ(Cuda().FreeHost(host.data()), 1);
  EXPECT_THAT(Problems(), SizeIs(2));
  Cuda().MemsetAsync(device.data(), 0, device.bytes(), stream_);
  host.assign(64, 7);
  ASSERT_EQ(Cuda().MemcpyAsync(host.data(), device.data(), 256, cuda::kDeviceToHost, stream_), 0);
  EXPECT_EQ(host[0], 7);
  Cuda().StreamSynchronize(stream_);
  EXPECT_EQ(host[0], 0);
  EXPECT_EQ(Cuda().HostUnregister(host.data()), 0);
  EXPECT_EQ(Cuda().HostUnregister(host.data()), 1);
}

TEST_F(MemoryTest, RefusesToFreeTwiceOrWhatIsNotAnAllocation) {
  void* memory = nullptr;
  ASSERT_EQ(Cuda().Malloc(&memory, 100), 0);
  EXPECT_EQ(Cuda().Free(static_cast<char*>(memory) + 4), 1);
  EXPECT_EQ(Cuda().FreeHost(memory), 1);
  EXPECT_EQ(Cuda().Free(memory), 0);
  EXPECT_EQ(Cuda().Free(memory), 1);
  EXPECT_EQ(Cuda().MemsetAsync(memory, 0, 100, stream_), 1);
  EXPECT_THAT(LastProblem(), HasSubstr("no allocation is there: freed"));
  ASSERT_EQ(Cuda().HostAlloc(&memory, 100, 0), 0);
  EXPECT_EQ(Cuda().FreeHost(memory), 0);
  EXPECT_EQ(Cuda().FreeHost(memory), 1);
  EXPECT_THAT(Problems(), SizeIs(5));
  EXPECT_EQ(Cuda().Free(nullptr), 0);
  EXPECT_EQ(Cuda().FreeHost(nullptr), 0);
}

TEST_F(MemoryTest, FreeWaitsForWhatUsesTheMemory) {
  const OnDevice<int> result(1);
  {
    const OnDevice<int> device(1);
    Cuda().MemsetAsync(device.data(), 0, 4, stream_);
    Start(stream_, AddKernel, 1, 1, device.data(), result.data(), 1, 3);
  }
  EXPECT_THAT(result.Values(), ElementsAre(3));
  EXPECT_THAT(Problems(), IsEmpty());
}

TEST_F(MemoryTest, RunsOutOfMemory) {
  Options options;
  options.devices[0].memory_bytes = 1 << 20;
  Reset(options);
  size_t free = 0, total = 0;
  void *a = nullptr, *b = nullptr;
  EXPECT_EQ(Cuda().Malloc(&a, 600 << 10), 0);
  EXPECT_EQ(Cuda().MemGetInfo(&free, &total), 0);
  EXPECT_EQ(total, size_t{1} << 20);
  EXPECT_EQ(free, size_t{424} << 10);
  EXPECT_EQ(Cuda().Malloc(&b, 600 << 10), 2);
  EXPECT_EQ(b, nullptr);
  EXPECT_EQ(Cuda().GetLastError(), 2);
  EXPECT_EQ(AllocatedBytes(), size_t{600} << 10);
  EXPECT_THAT(Leaks(), ElementsAre("614400 bytes on device 0"));
  EXPECT_EQ(Cuda().Free(a), 0);
  EXPECT_EQ(Cuda().Malloc(&b, 600 << 10), 0);
  EXPECT_EQ(Cuda().Free(b), 0);
  EXPECT_EQ(Cuda().Malloc(&b, size_t{1} << 60), 2);
  EXPECT_THAT(Problems(), IsEmpty());
  EXPECT_EQ(Count().allocations, 2);
  EXPECT_EQ(Count().frees, 2);
}

TEST_F(MemoryTest, ADeviceKnowsItsOwnMemoryAlone) {
  Options options;
  options.devices.resize(2);
  options.devices[1].name = "Second";
  Reset(options);
  int count = 0, minor = -1;
  char name[32];
  EXPECT_EQ(Cuda().GetDeviceCount(&count), 0);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(Cuda().DeviceGetName(name, 4, 1), 0);
  EXPECT_STREQ(name, "Sec");
  EXPECT_EQ(Cuda().DeviceGetAttribute(&minor, cuda::kAttributeComputeCapabilityMinor, 1), 0);
  EXPECT_EQ(minor, 0);
  EXPECT_EQ(Cuda().SetDevice(2), 101);
  EXPECT_EQ(Cuda().SetDevice(1), 0);
  const OnDevice<int> second(1);
  EXPECT_EQ(AllocatedBytes(0), 0u);
  EXPECT_EQ(AllocatedBytes(1), 256u);
  EXPECT_ANY_THROW(Start(stream_, FillKernel<int>, 1, 1, second.data(), 1, 7));
  EXPECT_THAT(LastProblem(), HasSubstr("on a stream of another device"));
  EXPECT_EQ(Cuda().SetDevice(0), 0);
  EXPECT_DEATH(Fill(stream_, second.data(), 1), "device code.*touched device memory");
}

}  // namespace
}  // namespace emulated_gpu
