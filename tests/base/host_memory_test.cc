#include "trainer/base/process/host_memory.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/scoped.h"
#include "support/temp_folder.h"

namespace trainer {
namespace {

class HostMemoryTest : public testing::Test {
 protected:
  HostMemoryTest() {
    Write("proc/meminfo", "MemTotal:        1000 kB\nMemFree: 5 kB\nMemAvailable:     600 kB\n");
  }
  ~HostMemoryTest() override { ShareMemory(1); }
  void Write(const std::string& path, const std::string& text) const {
    const std::filesystem::path whole = folder_ / path;
    std::filesystem::create_directories(whole.parent_path());
    WriteText(whole.string(), text);
  }
  void Expect(uint64_t total, uint64_t available, const std::string& limit) const {
    const HostMemory memory = ReadHostMemory(folder_.path());
    EXPECT_EQ(memory.total, total);
    EXPECT_EQ(memory.available, available);
    EXPECT_EQ(memory.limit, limit);
  }

  TempFolder folder_;
  const ScopedEnvironment slurm_node_{"SLURM_MEM_PER_NODE", std::nullopt};
  const ScopedEnvironment slurm_cpu_{"SLURM_MEM_PER_CPU", std::nullopt};
  const ScopedEnvironment slurm_cpus_{"SLURM_CPUS_ON_NODE", std::nullopt};
};

TEST_F(HostMemoryTest, IsTheMachinesWithoutLimits) {
  Expect(1024000, 614400, "the machine");
  Write("proc/self/cgroup", "0::/job\n");
  Write("sys/fs/cgroup/job/memory.max", "max\n");
  Expect(1024000, 614400, "the machine");
}

TEST_F(HostMemoryTest, AControlGroupAndThoseAboveItSetLimits) {
  Write("proc/self/cgroup", "0::/jobs/one\n");
  Write("sys/fs/cgroup/jobs/one/memory.max", "500000\n");
  Write("sys/fs/cgroup/jobs/one/memory.current", "300000\n");
  Write("sys/fs/cgroup/jobs/one/memory.stat", "anon 5\ninactive_file 100000\n");
  Expect(500000, 300000, "the control group /jobs/one");
  Write("sys/fs/cgroup/jobs/memory.max", "400000\n");
  Write("sys/fs/cgroup/jobs/memory.current", "390000\n");
  Expect(400000, 10000, "the control group /jobs");
}

TEST_F(HostMemoryTest, ReadsTheOlderControlGroupsAndTheRootWhereAContainerHidesTheRest) {
  Write("proc/self/cgroup", "9:cpu:/a\n4:hugetlb,memory:/docker/123\n");
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  Expect(1024000, 614400, "the machine");
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "700000\n");
  Write("sys/fs/cgroup/memory/memory.usage_in_bytes", "800000\n");
  Write("sys/fs/cgroup/memory/memory.stat", "total_inactive_file 50000\n");
  Expect(700000, 0, "the control group /");
}

TEST_F(HostMemoryTest, WhatSlurmGaveTheJobIsALimit) {
  Write("proc/meminfo", "MemTotal:  8000000 kB\nMemAvailable:  6000000 kB\n");
  slurm_node_.Set("2000");
  Expect(uint64_t{2000} << 20, uint64_t{2000} << 20, "SLURM_MEM_PER_NODE");
  slurm_node_.Set("0");  // 0 means the whole machine
  Expect(8192000000, 6144000000, "the machine");
  slurm_node_.Set(std::nullopt);
  slurm_cpu_.Set("500");
  Expect(8192000000, 6144000000, "the machine");
  slurm_cpus_.Set("3");
  Expect(uint64_t{1500} << 20, uint64_t{1500} << 20, "SLURM_MEM_PER_CPU of 3 CPUs");
}

TEST_F(HostMemoryTest, IsDividedAmongTheRanksThatShareIt) {
  ShareMemory(2);
  Expect(512000, 307200, "each of 2 ranks' part of the machine");
  Write("proc/self/cgroup", "0::/job\n");
  Write("sys/fs/cgroup/job/memory.max", "400000\n");
  Write("sys/fs/cgroup/job/memory.current", "100000\n");
  Expect(200000, 150000, "each of 2 ranks' part of the control group /job");
}

TEST_F(HostMemoryTest, KnowsNothingWithoutFiles) {
  const HostMemory memory = ReadHostMemory(folder_ / "nowhere");
  EXPECT_EQ(memory.total, 0u);
  EXPECT_EQ(memory.limit, "");
}

TEST_F(HostMemoryTest, ThisMachineHasSome) {
  const HostMemory memory = ReadHostMemory();
  EXPECT_GT(memory.total, uint64_t{1} << 20);
  EXPECT_LE(memory.available, memory.total);
}

}  // namespace
}  // namespace trainer
