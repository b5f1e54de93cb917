#include "trainer/base/thread/thread_team.h"

#include <gmock/gmock.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "support/in_child.h"
#include "trainer/base/thread/spin.h"

namespace trainer {
namespace {

class ThreadTeamTest : public testing::Test {
 protected:
  ThreadTeamTest() { SetTeamSize(4); }
  ~ThreadTeamTest() override { SetTeamSize(1); }
};

TEST_F(ThreadTeamTest, RunsEachPartOnce) {
  for (const int parts : {1, 2, 3, 4, 5, 17}) {
    for (int round = 0; round < 200; ++round) {
      std::vector<std::atomic<int>> calls(static_cast<size_t>(parts));
      RunParts(parts, [&](int p) { calls[static_cast<size_t>(p)].fetch_add(1); });
      for (const auto& count : calls) ASSERT_EQ(count.load(), 1) << parts << " parts";
    }
  }
}

TEST_F(ThreadTeamTest, AThreadRunsOnePartAtATime) {
  std::array<std::atomic<int>, 4> running{};
  std::atomic<bool> wrong{false};
  for (int round = 0; round < 500; ++round) {
    RunParts(32, 4, [&](int, int thread) {
      if (running.at(static_cast<size_t>(thread)).exchange(1) != 0) wrong = true;
      running.at(static_cast<size_t>(thread)) = 0;
    });
  }
  EXPECT_FALSE(wrong);
}

// A kernel made for two threads has scratch memory for two, even if the team has grown since.
TEST_F(ThreadTeamTest, KeepsToTheMaximumOfThreads) {
  std::atomic<int> calls{0}, largest{0};
  for (int round = 0; round < 500; ++round) {
    RunParts(32, 2, [&](int, int thread) {
      ++calls;
      if (thread > largest) largest = thread;
    });
  }
  EXPECT_EQ(calls.load(), 500 * 32);
  EXPECT_LT(largest.load(), 2);
}

// The caller's first part ends only when all others are done, so other threads must run the rest of
// the caller's share.
TEST_F(ThreadTeamTest, OtherThreadsTakeOverThePartsOfASlowThread) {
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> done{0};
    RunParts(16, [&](int part) {
      const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
      while (part == 0 && done < 15 && std::chrono::steady_clock::now() < end) sched_yield();
      if (part > 0) {
        ++done;
      } else {
        EXPECT_EQ(done.load(), 15) << "no other thread ran the parts within a minute";
      }
    });
  }
}

TEST_F(ThreadTeamTest, WhatThePartsWroteIsSeenAfterwards) {
  std::vector<int> value(4);
  for (int round = 1; round < 2000; ++round) {
    RunParts(4, [&](int p) { value[static_cast<size_t>(p)] += round; });
    ASSERT_THAT(value, testing::Each(round * (round + 1) / 2));
  }
}

TEST_F(ThreadTeamTest, RegionsDoNotNest) {
  std::atomic<int> calls{0}, inside{0};
  RunParts(3, [&](int) {
    inside += InParallelRegion() ? 1 : 0;
    RunParts(2, [&](int) { ++calls; });
  });
  EXPECT_EQ(inside.load(), 3);
  EXPECT_EQ(calls.load(), 6);
  EXPECT_FALSE(InParallelRegion());
}

constexpr int kRounds = 100;  // on a busy machine each round waits until every thread is scheduled

struct Rounds {
  std::atomic<int> sum{0};
  std::atomic<bool> wrong{false};
  int threads = 0;
};

// Adds 1 on all threads in each round; the sum must not change between two barriers.
void AddInRounds(void* data) {
  auto& rounds = *static_cast<Rounds*>(data);
  for (int round = 1; round <= kRounds; ++round) {
    rounds.sum.fetch_add(1);
    RegionBarrier();
    if (rounds.sum.load() != round * rounds.threads) rounds.wrong = true;
    if (RegionThreads() != rounds.threads) rounds.wrong = true;
    RegionBarrier();
  }
}

TEST_F(ThreadTeamTest, ThreadsThatRunTogetherMayWaitForEachOther) {
  for (const int threads : {1, 2, 4, 7}) {
    Rounds rounds;
    rounds.threads = threads;
    RunTogether(threads, AddInRounds, &rounds);
    EXPECT_FALSE(rounds.wrong) << threads;
    EXPECT_EQ(rounds.sum.load(), kRounds * threads);
  }
}

TEST_F(ThreadTeamTest, EachThreadOfARegionHasItsNumber) {
  static std::array<std::atomic<int>, 4> seen;
  for (auto& count : seen) count = 0;
  for (int round = 0; round < 100; ++round) {
    RunTogether(
        4, [](void*) { seen[static_cast<size_t>(RegionThread())].fetch_add(1); }, nullptr);
  }
  for (const auto& count : seen) EXPECT_EQ(count.load(), 100);
  EXPECT_EQ(RegionThread(), 0);
  EXPECT_EQ(RegionThreads(), 1);
}

TEST_F(ThreadTeamTest, TwoThreadsHaveRegionsAtTheSameTime) {
  std::atomic<int> calls{0};
  const auto work = [&] {
    for (int round = 0; round < 500; ++round) RunParts(3, [&](int) { ++calls; });
  };
  std::jthread other(work);
  work();
  other.join();
  EXPECT_EQ(calls.load(), 2 * 500 * 3);
}

// With all threads on one core, a region continues only if its waiting threads yield the core.
void PinToOneCore() {
  cpu_set_t all, one;
  sched_getaffinity(0, sizeof all, &all);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &all)) {
      CPU_SET(cpu, &one);
      break;
    }
  }
  sched_setaffinity(0, sizeof one, &one);
}

TEST_F(ThreadTeamTest, AChildProcessHasATeamOfItsOwn) {
  RunParts(4, [](int) {});
  EXPECT_EQ(InChild([] {
              std::atomic<int> calls{0};
              RunParts(4, [&](int) { ++calls; });
              return calls.load() == 4 ? 0 : 1;
            }),
            0);
}

TEST_F(ThreadTeamTest, KnowsThatItsThreadsHadNoCore) {
  if (SecondsWithoutCore() < 0) GTEST_SKIP() << "this system does not tell";
  EXPECT_EQ(InChild([] {
              PinToOneCore();
              Rounds rounds;
              rounds.threads = 4;
              for (int round = 0; round < 1000 && TeamSecondsWithoutCore() < 0.01; ++round) {
                rounds.sum = 0;
                RunTogether(4, AddInRounds, &rounds);
              }
              return TeamSecondsWithoutCore() >= 0.01 && !rounds.wrong ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace trainer
