#include "trainer/base/thread/threads.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace trainer {
namespace {

namespace fs = std::filesystem;

TEST(ThreadCountTest, ReadsANumberOrTheFirstOfAList) {
  EXPECT_EQ(ParseThreadCount("4"), 4);
  EXPECT_EQ(ParseThreadCount(" 12 "), 12);
  EXPECT_EQ(ParseThreadCount("4,2,1"), 4);
}

TEST(ThreadCountTest, TakesNothingFromWhatIsNotAPositiveNumber) {
  for (const char* text : {"", "0", "-3", "four", "4x", ",4", "99999999999999999999"}) {
    EXPECT_EQ(ParseThreadCount(text), 0) << text;
  }
  EXPECT_EQ(ParseThreadCount(nullptr), 0);
}

TEST(CpuMaxTest, RoundsPartsOfACpuUp) {
  EXPECT_EQ(ParseCpuMax("100000 100000\n"), 1);
  EXPECT_EQ(ParseCpuMax("150000 100000\n"), 2);
  EXPECT_EQ(ParseCpuMax("10000 100000\n"), 1);
  EXPECT_EQ(ParseCpuMax("1600000 100000"), 16);
}

TEST(CpuMaxTest, KnowsThatMaxAndNonsenseMeanNoLimit) {
  for (const char* text : {"max 100000\n", "", "max", "5", "100 0", "-1 100000", "a b"}) {
    EXPECT_EQ(ParseCpuMax(text), 0) << text;
  }
}

TEST(QuotaTest, DoesNotOverflow) {
  EXPECT_EQ(QuotaCpus(9223372036854775807LL, 1), 2147483647);
  EXPECT_EQ(QuotaCpus(-1, 100000), 0);
}

class CgroupTest : public testing::Test {
 protected:
  CgroupTest() {
    std::string name = testing::TempDir() + "cgroup_XXXXXX";
    root_ = mkdtemp(name.data());
  }
  ~CgroupTest() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& content) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << content;
  }

  std::string root_;
};

TEST_F(CgroupTest, TakesTheSmallestLimitOfAllLevelsOfVersion2) {
  Write("/cpu.max", "max 100000\n");
  Write("/slurm/cpu.max", "200000 100000\n");
  Write("/slurm/job/cpu.max", "400000 100000\n");
  EXPECT_EQ(CgroupCpus(root_, "0::/slurm/job\n"), 2);
  EXPECT_EQ(CgroupCpus(root_, "0::/other\n"), 0);
}

TEST_F(CgroupTest, ReadsTheRootWhenThePathIsTheHosts) {
  Write("/cpu.max", "300000 100000\n");
  EXPECT_EQ(CgroupCpus(root_, "0::/kubepods/pod1/container\n"), 3);
}

TEST_F(CgroupTest, ReadsVersion1UnderBothMountNames) {
  Write("/cpu,cpuacct/job/cpu.cfs_quota_us", "250000\n");
  Write("/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  Write("/cpu/lone/cpu.cfs_quota_us", "100000\n");
  Write("/cpu/lone/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CgroupCpus(root_, "5:memory:/job\n4:cpu,cpuacct:/job\n0::/\n"), 3);
  EXPECT_EQ(CgroupCpus(root_, "1:cpu:/lone\n"), 1);
}

TEST_F(CgroupTest, FindsNoLimitInAnUnlimitedOrBrokenGroup) {
  Write("/cpu/cpu.cfs_quota_us", "-1\n");
  Write("/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CgroupCpus(root_, "1:cpu:/\n"), 0);
  EXPECT_EQ(CgroupCpus(root_, "nonsense\n::\n0:\n:"), 0);
  EXPECT_EQ(CgroupCpus(root_, ""), 0);
}

TEST(ChooseThreadsTest, PrefersOmpOverSlurmOverTheMask) {
  EXPECT_EQ(ChooseThreads({.mask = 16}), 16);
  EXPECT_EQ(ChooseThreads({.mask = 16, .slurm = 8}), 8);
  EXPECT_EQ(ChooseThreads({.mask = 16, .omp = 4, .slurm = 8}), 4);
}

TEST(ChooseThreadsTest, DividesWhatRanksShare) {
  EXPECT_EQ(ChooseThreads({.mask = 16, .ranks = 4, .quota_ranks = 4}), 4);
  EXPECT_EQ(ChooseThreads({.mask = 4, .quota = 8, .ranks = 1, .quota_ranks = 4}), 2);
  EXPECT_EQ(ChooseThreads({.mask = 16, .omp = 8, .ranks = 4, .quota_ranks = 4}), 4);
  EXPECT_EQ(ChooseThreads({.mask = 2, .quota = 1, .ranks = 4, .quota_ranks = 4}), 1);
  EXPECT_EQ(DescribeThreads({.mask = 4, .quota = 2, .ranks = 1, .quota_ranks = 2}),
            "1 thread (affinity mask of 4 CPUs, cgroup quota of 2 CPUs for 2 ranks)");
  EXPECT_EQ(DescribeThreads({.mask = 2, .ranks = 2, .quota_ranks = 2}),
            "1 thread (affinity mask of 2 CPUs, shared by 2 ranks)");
}

TEST(ChooseThreadsTest, NeverExceedsTheMaskOrTheQuota) {
  EXPECT_EQ(ChooseThreads({.mask = 2, .omp = 64}), 2);
  EXPECT_EQ(ChooseThreads({.mask = 16, .quota = 3, .omp = 8}), 3);
  EXPECT_EQ(ChooseThreads({.mask = 16, .quota = 20}), 16);
  EXPECT_EQ(ChooseThreads({.mask = 16, .quota = 3, .omp = 2}), 2);
}

TEST(DescribeThreadsTest, NamesEverySourceThatCounted) {
  EXPECT_EQ(DescribeThreads({.mask = 2, .omp = 8, .slurm = 4}),
            "2 threads (OMP_NUM_THREADS=8, affinity mask of 2 CPUs)");
  EXPECT_EQ(DescribeThreads({.mask = 4, .quota = 1, .slurm = 4}),
            "1 thread (SLURM_CPUS_PER_TASK=4, affinity mask of 4 CPUs, cgroup quota of 1 CPU)");
}

TEST(ReadThreadFactsTest, SeesAMaskNarrowedToOneCpu) {
  int mask = 0;
  std::thread([&mask] {  // the mask belongs to this thread: other tests keep theirs
    cpu_set_t set;
    sched_getaffinity(0, sizeof(set), &set);
    int first = 0;
    while (!CPU_ISSET(first, &set)) ++first;
    CPU_ZERO(&set);
    CPU_SET(first, &set);
    if (sched_setaffinity(0, sizeof(set), &set) == 0) mask = ReadThreadFacts().mask;
  })
      .join();
  EXPECT_EQ(mask, 1);
}

TEST(AvailableThreadsTest, GivesAtLeastOneAndAtMostTheMask) {
  EXPECT_GE(AvailableThreads(), 1);
  EXPECT_LE(AvailableThreads(), ReadThreadFacts().mask);
}

}  // namespace
}  // namespace trainer
