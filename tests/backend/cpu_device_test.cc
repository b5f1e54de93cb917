#include "trainer/backend/device/cpu_device.h"

#include <gmock/gmock.h>
#include <omp.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/test_device.h"
#include "trainer/backend/device/device.h"
#include "trainer/backend/memory/library_call.h"
#include "trainer/base/error/error.h"

// Makes failed allocations return null under the address sanitizer instead of ending the process.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }

namespace trainer {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::StartsWith;
using testing::ThrowsMessage;

TEST(CpuDeviceTest, SaysThreadsAndInstructionSet) {
  TRAINER_CPU_ONLY("it is the device that is tested");
  EXPECT_THAT(MakeCpuDevice(1)->Describe(), StartsWith("CPU, 1 thread, "));
  EXPECT_THAT(MakeCpuDevice(2)->Describe(), StartsWith("CPU, 2 threads, "));
}

// Returns the flags that the kernel has for the mapping that holds `memory`, as in proc(5).
std::string MappingFlags(const void* memory) {
  std::ifstream maps("/proc/self/smaps");
  const auto address = reinterpret_cast<uintptr_t>(memory);
  bool holds = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      holds = begin <= address && address < end;
    } else if (holds && line.starts_with("VmFlags:")) {
      return line;
    }
  }
  return "";
}

TEST(CpuDeviceTest, AsksForHugePagesForLargeArrays) {
  TRAINER_CPU_ONLY("it is the device that is tested");
  if (!std::filesystem::exists("/sys/kernel/mm/transparent_hugepage")) {
    GTEST_SKIP() << "the kernel has no transparent huge pages";
  }
  const auto device = MakeCpuDevice(1);
  constexpr size_t kBytes = size_t{64} << 20;
  auto* memory = static_cast<std::byte*>(device->Allocate(kBytes));
  EXPECT_THAT(MappingFlags(memory + kBytes / 2), HasSubstr(" hg"));
  device->Free(memory);
}

TEST(CpuDeviceTest, SetsTheOpenMpTeam) {
  TRAINER_CPU_ONLY("it is the device that is tested");
  MakeCpuDevice(1);
  EXPECT_EQ(omp_get_max_threads(), 1);
  MakeCpuDevice(2);
  EXPECT_EQ(omp_get_max_threads(), 2);
  EXPECT_GE((MakeCpuDevice(), omp_get_max_threads()), 1);
}

TEST(CpuDeviceTest, RefusesFewerThanNoThreads) {
  TRAINER_CPU_ONLY("it is the device that is tested");
  EXPECT_THAT([] { MakeCpuDevice(-3); },
              ThrowsMessage<Error>(HasSubstr("a device of -3 threads; use 1 or more")));
}

TEST(CpuDeviceTest, AllocatesAlignedMemory) {
  TRAINER_CPU_ONLY("it is the device that is tested");
  const auto device = MakeCpuDevice(2);
  for (const size_t bytes : {1, 63, 4096, 1 << 20}) {
    void* memory = device->Allocate(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
    device->Free(memory);
  }
  device->Free(nullptr);
}

TEST(CpuDeviceTest, FillsEachByte) {
  TRAINER_CPU_ONLY("it is the device that is tested");
  const auto device = MakeCpuDevice(2);
  std::array<unsigned char, 5> bytes = {1, 2, 3, 4, 5};
  device->Memset(bytes.data() + 1, 0xff, 3);
  EXPECT_THAT(bytes, testing::ElementsAre(1, 0xff, 0xff, 0xff, 5));
  device->Zero(bytes.data(), 2);
  EXPECT_THAT(bytes, testing::ElementsAre(0, 0, 0xff, 0xff, 5));
}

TEST(CpuDeviceTest, HostMemoryIsAlignedForAnyType) {
  TRAINER_CPU_ONLY("it is the device that is tested");
  const auto device = MakeCpuDevice(2);
  for (const size_t count : {1, 3, 1000}) {
    const std::pmr::vector<unsigned char> bytes(count, &device->PinnedMemory());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes.data()) % 64, 0u);
  }
}

TEST(CpuDeviceTest, ItsCopyQueueHasCopiedWhenACallReturns) {
  TRAINER_CPU_ONLY("it is the device that is tested");
  const auto device = MakeCpuDevice(2);
  const auto queue = device->NewCopyStream();
  const std::pmr::vector<float> from({1, 2, 3}, &device->PinnedMemory());
  std::array<float, 3> to = {};
  queue->CopiesWaitForCompute();
  queue->CopyToDevice(to.data(), from.data(), sizeof(to));
  EXPECT_THAT(to, testing::ElementsAre(1, 2, 3));
  queue->ComputeWaitsForCopies();
  queue->WaitForCopies();
}

TEST(CpuDeviceTest, SupportsWhatDescriptionsAdd) {
  TRAINER_CPU_ONLY("it is the device that is tested");
  const auto device = MakeCpuDevice(2);
  ConvDesc conv;
  conv.relu = true;
  EXPECT_TRUE(device->Supports(conv));
  BatchNormDesc norm;
  norm.other = norm.relu = true;
  EXPECT_TRUE(device->Supports(norm));
}

TEST(CpuDeviceTest, SaysHowMuchMemoryIsMissing) {
  TRAINER_CPU_ONLY("it is the device that is tested");
  const auto device = MakeCpuDevice(2);
  try {
    device->Allocate(size_t{1} << 60);
    FAIL() << "that much memory cannot be";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kResource);
    EXPECT_THAT(e.what(), AllOf(HasSubstr("1152921504606846976 bytes"), HasSubstr("batch_size")));
  }
}

TEST(CpuDeviceTest, CopiesAndZeroes) {
  TRAINER_CPU_ONLY("it is the device that is tested");
  const auto device = MakeCpuDevice(2);
  std::array<float, 4> from = {1, 2, 3, 4}, to{};
  void* memory = device->Allocate(sizeof(from));
  device->CopyToDevice(memory, from.data(), sizeof(from));
  device->CopyToHost(to.data(), memory, sizeof(to));
  EXPECT_EQ(to, from);
  device->Zero(memory, sizeof(from));
  device->CopyToHost(to.data(), memory, sizeof(to));
  EXPECT_THAT(to, Each(0.0f));
  device->CopyToDevice(nullptr, nullptr, 0);
  device->Free(memory);
}

TEST(InLibraryCallTest, NestsAndIsOffOutside) {
  EXPECT_FALSE(InLibraryCall::Active());
  {
    const InLibraryCall outer;
    { const InLibraryCall inner; }
    EXPECT_TRUE(InLibraryCall::Active());
  }
  EXPECT_FALSE(InLibraryCall::Active());
}

}  // namespace
}  // namespace trainer
