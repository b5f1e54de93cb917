// A rank's environment, cores and topology, which it determines before it trains.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "bucket_size.h"
#include "join/cpu_sets.h"
#include "join/rank_address.h"
#include "trainer/parallel/all_reduce_limits.h"
#include "trainer/parallel/environment.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

LaunchEnvironment Read(const std::map<std::string, std::string>& variables) {
  return ReadLaunchEnvironment([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(RankEnvironmentTest, KnowsWhoStartedTheRanks) {
  EXPECT_EQ(Read({}).launcher, LaunchEnvironment::kNone);
  EXPECT_EQ(Read({{"OMPI_COMM_WORLD_SIZE", "2"}}).launcher, LaunchEnvironment::kMpi);
  EXPECT_EQ(Read({{"OMPI_COMM_WORLD_SIZE", "1"}, {"PMIX_RANK", "0"}}).launcher,
            LaunchEnvironment::kNone);
  EXPECT_EQ(Read({{"PMI_SIZE", "4"}, {"PMI_RANK", "0"}}).launcher, LaunchEnvironment::kMpi);
  EXPECT_EQ(Read({{"PMIX_RANK", "0"}, {"SLURM_STEP_NUM_TASKS", "8"}}).launcher,
            LaunchEnvironment::kMpi);
  const LaunchEnvironment own = Read({{"TRAINER_WORLD", "1:3:17"}});
  EXPECT_EQ(own.launcher, LaunchEnvironment::kFork);
  EXPECT_EQ(own.rank, 1);
  EXPECT_EQ(own.count, 3);
  EXPECT_EQ(own.fd, 17);
}

TEST(RankEnvironmentTest, AWorldThatNobodyStartedIsIgnoredWithAWarning) {
  for (const char* world : {"", "x", "1:2", "2147483647:2147483647:3", "3:3:4", "-1:3:4", "0:0:4",
                            "0:2147483647:4", "0:2:-1", "0:2:4:5"}) {
    const LaunchEnvironment alone = Read({{"TRAINER_WORLD", world}});
    EXPECT_EQ(alone.launcher, LaunchEnvironment::kNone) << world;
    EXPECT_EQ(alone.count, 1) << world;
    EXPECT_THAT(alone.warning, HasSubstr("is ignored")) << world;
  }
}

TEST(RankEnvironmentTest, KnowsHowManyRanksMpiMustFind) {
  const LaunchEnvironment open_mpi =
      Read({{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "1"}, {"PMIX_RANK", "1"}});
  EXPECT_EQ(open_mpi.count, 2);
  EXPECT_EQ(open_mpi.rank, 1);
  EXPECT_EQ(open_mpi.count_variable, "OMPI_COMM_WORLD_SIZE");
  EXPECT_EQ(Read({{"PMI_SIZE", "4"}, {"PMI_RANK", "3"}}).count_variable, "PMI_SIZE");
  EXPECT_EQ(Read({{"PMI_SIZE", "4"}, {"PMI_RANK", "3"}}).rank, 3);
  EXPECT_EQ(Read({{"PMIX_RANK", "0"}, {"SLURM_STEP_NUM_TASKS", "8"}}).count, 8);
  EXPECT_EQ(Read({{"PMIX_RANK", "0"}}).count, 0);
  EXPECT_EQ(Read({}).count, 1);
}

TEST(RankEnvironmentTest, WarnsOfTasksThatNothingJoins) {
  EXPECT_EQ(Read({{"SLURM_NTASKS", "1"}}).warning, "");
  EXPECT_THAT(Read({{"SLURM_NTASKS", "4"}}).warning, HasSubstr("srun --mpi=pmix trainer train"));
  EXPECT_THAT(Read({{"SLURM_NTASKS", "4"}, {"SLURM_STEP_NUM_TASKS", "4"}}).warning,
              HasSubstr("each one trains its own model"));
  EXPECT_EQ(Read({{"SLURM_NTASKS", "4"}, {"OMPI_COMM_WORLD_SIZE", "4"}}).warning, "");
}

CoreSet Cores(std::initializer_list<int> numbers) {
  CoreSet cores = {};
  for (const int core : numbers)
    cores[static_cast<size_t>(core / 64)] |= uint64_t{1} << (core % 64);
  return cores;
}

TEST(RankCoresTest, GiveEachRankAsManyOfItsOwn) {
  EXPECT_THAT(SplitCores(Cores({0, 1, 2, 5, 70}), 2), ElementsAre(Cores({0, 1}), Cores({2, 5})));
  EXPECT_THAT(SplitCores(Cores({3, 4}), 2), ElementsAre(Cores({3}), Cores({4})));
  EXPECT_THAT(SplitCores(Cores({3}), 2), IsEmpty());
}

TEST(RankCoresTest, CountThoseThatShareThem) {
  const std::vector<CoreSet> sets = {Cores({0, 1}), Cores({1, 2}), Cores({65})};
  EXPECT_EQ(RanksOnCoresOf(sets, 0), 2);
  EXPECT_EQ(RanksOnCoresOf(sets, 2), 1);
}

TEST(RankCoresTest, WarnOfRanksOnOneCore) {
  EXPECT_EQ(OversubscriptionWarning({Cores({0}), Cores({1})}, {0, 1}), "");
  EXPECT_EQ(OversubscriptionWarning({Cores({0, 1}), Cores({0, 1})}, {0, 1}), "");
  const std::string warning =
      OversubscriptionWarning({Cores({0}), Cores({1}), Cores({1})}, {4, 5, 6});
  EXPECT_THAT(warning, HasSubstr("Ranks 5, 6 share 1 core"));
  EXPECT_THAT(warning, HasSubstr("--bind-to core"));
}

TEST(RankCoresTest, WarnOfAQuotaThatIsTooSmallForAllRanks) {
  EXPECT_EQ(QuotaWarning(0, 4), "");
  EXPECT_EQ(QuotaWarning(4, 4), "");
  EXPECT_THAT(QuotaWarning(2, 4),
              HasSubstr("The 4 ranks of this machine may use the time of only 2 CPUs"));
  EXPECT_THAT(QuotaWarning(1, 2), HasSubstr("start one, or request more CPUs"));
}

RankAddress AddressOf(const std::string& machine) {
  RankAddress address;
  machine.copy(address.machine, sizeof address.machine - 1);
  return address;
}

TEST(TopologyTest, JoinsTheRanksOfAMachine) {
  const std::vector<RankAddress> addresses = {AddressOf("a"), AddressOf("b"), AddressOf("a"),
                                              AddressOf("a"), AddressOf("b")};
  const Topology map = TopologyOf(addresses, 3, false);
  EXPECT_THAT(map.ranks_of_node, ElementsAre(ElementsAre(0, 2, 3), ElementsAre(1, 4)));
  EXPECT_EQ(map.node, 0);
  EXPECT_EQ(map.local_rank, 2);
  EXPECT_THAT(map.Rails(), ElementsAre(ElementsAre(0, 1), ElementsAre(2, 4)));
  EXPECT_EQ(map.host_local_rank, 3) << "of one computer";
  EXPECT_EQ(map.host_local_size, 5);
  EXPECT_THAT(map.name(), HasSubstr("rank 3 ("));
  EXPECT_EQ(TopologyOf(addresses, 3, true).nodes(), 5);
}

TEST(TopologyTest, SaysWhySumsOverMachinesAreNoBinaryTree) {
  const auto why = [](const std::string& machines, bool alone = false) {
    std::vector<RankAddress> addresses;
    for (const char machine : machines) addresses.push_back(AddressOf(std::string(1, machine)));
    return TopologyOf(addresses, 0, alone).WhyNotTreeOrder();
  };
  for (const char* kept : {"a", "aaaa", "aabb", "abcd", "aaaabbbb"}) EXPECT_EQ(why(kept), "");
  EXPECT_EQ(why("abab", true), "") << "each rank counts as a machine";
  EXPECT_THAT(why("abbb"), testing::HasSubstr("machine 1 has 3 ranks, but machine 0 has 1"));
  EXPECT_THAT(why("aaabbb"), testing::HasSubstr("a power of two"));
  EXPECT_THAT(why("abab"), testing::HasSubstr("rank 2 is number 1 of machine 0: neighbouring "
                                              "ranks must be on one machine"));
}

TEST(TopologyTest, SendsAddressesAsBytes) {
  const RankAddress address = FromBytes(ToBytes(OwnAddress()));
  EXPECT_STREQ(address.machine, OwnAddress().machine);
  EXPECT_STREQ(address.computer, OwnAddress().computer);
  EXPECT_EQ(address.process, OwnAddress().process);
}

TEST(BucketSizeTest, HoldsEightTimesWhatTheLatencyCosts) {
  EXPECT_EQ(BucketBytes(1e-6, 8e9), 65536u);
  EXPECT_EQ(BucketBytes(50e-6, 1e9), 458752u);
  EXPECT_EQ(BucketBytes(1, 1e9), 64u << 20);
}

TEST(BucketSizeTest, DescribesItself) {
  EXPECT_EQ(Describe({2.1e-6, 9.34e9}), "latency 2.1 us, 9.34 GB/s");
  EXPECT_EQ(DescribeBytes(65536), "64 KiB");
  EXPECT_EQ(DescribeBytes(25 << 20), "25 MiB");
}

}  // namespace
}  // namespace trainer
