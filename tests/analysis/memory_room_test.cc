// Tests the memory that a run may use, from the texts of flags and from the machine.

#include "trainer/analysis/memory/memory_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"
#include "support/scoped.h"
#include "support/test_device.h"
#include "trainer/backend/device/available_memory.h"

namespace trainer {
namespace {

using testing::HasSubstr;

TEST(MemoryRoomTest, TheHostHasWhatThisProcessMayUseUnlessALimitIsGiven) {
  EXPECT_EQ(ResolveHostRoom("none").bytes, 0u);
  const MemoryRoom named = ResolveHostRoom("64GiB");
  EXPECT_EQ(named.bytes, size_t{64} << 30);
  EXPECT_EQ(named.name, "64.0 GiB");
  const ScopedEnvironment job("SLURM_MEM_PER_NODE", "12");
  const MemoryRoom own = ResolveHostRoom("");
  EXPECT_EQ(own.bytes, size_t{12} << 20);
  EXPECT_EQ(own.name, "SLURM_MEM_PER_NODE, 12.0 MiB");
  EXPECT_FALSE(own.gpu);
  const auto [code, text] = ErrorOf([] { ResolveHostRoom("much"); });
  EXPECT_EQ(code, ErrorCode::kUsage);
  EXPECT_THAT(text, HasSubstr("--limit=much: not a memory size"));
}

TEST(MemoryRoomTest, AGpuThatIsNotThereHasTheMemoryThatIsGiven) {
  EXPECT_EQ(ResolvePlannedGpuRoom("").bytes, 0u);
  const MemoryRoom room = ResolvePlannedGpuRoom("16GiB");
  EXPECT_EQ(room.bytes, size_t{16} << 30);
  EXPECT_TRUE(room.gpu && room.estimated);
  for (const char* wrong : {"-16GiB", "GiB", "1e99GiB", "16 gib", "nanGiB"}) {
    const auto [code, text] = ErrorOf([&] { ResolvePlannedGpuRoom(wrong); });
    EXPECT_EQ(code, ErrorCode::kUsage) << wrong;
    EXPECT_THAT(text, HasSubstr("such as 16GiB, or the number of a GPU")) << wrong;
  }
}

TEST(MemoryLimitFlagTest, IsASizeOrWhatTheDeviceHas) {
  const std::unique_ptr<Device> device = MakeTestDevice(1);
  EXPECT_EQ(ParseMemoryLimit("8GiB", *device), size_t{8} << 30);
  EXPECT_EQ(ParseMemoryLimit("auto", *device), FindAvailableMemory(*device).bytes);
  for (const char* mode : {"", "shared", "separate", "poisoned"}) {
    EXPECT_FALSE(ParseMemoryLimit(mode, *device)) << mode;
  }
  for (const char* wrong : {"much", "0", "0GiB"}) {
    const auto [code, text] = ErrorOf([&] { ParseMemoryLimit(wrong, *device); });
    EXPECT_EQ(code, ErrorCode::kUsage) << wrong;
    EXPECT_THAT(text, HasSubstr(": not a memory size")) << wrong;
  }
}

}  // namespace
}  // namespace trainer
