// Ranks that die, hang or throw: all others end soon, with one message and one exit code.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "ranks.h"
#include "trainer/base/error/error.h"
#include "trainer/parallel/consistency.h"

namespace trainer {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

// Sums until rank `one` has done 5 iterations and calls fault(); never ends by itself.
int Train(World& world, int one, const std::function<void()>& fault) {
  Communicator& group = world.group();
  for (int iteration = 1;; ++iteration) {
    float value = 1;
    group.AllReduce({&value, 1});
    group.Heartbeat(iteration);
    if (iteration == 5 && group.rank().rank == one) fault();
  }
}

World::Options Impatient() {
  World::Options settings;
  settings.warn_after = milliseconds(300);
  settings.peer_timeout = milliseconds(900);
  return settings;
}

// Runs impatient ranks until `tells` accepts the outcome. If other programs use the cores, ranks
// may miss each other through no fault of their own: such a run proves nothing and is repeated.
RanksOutcome RunUntil(const std::function<bool(const RanksOutcome&)>& tells, int count,
                      const std::function<int(World&)>& body) {
  RanksOutcome outcome;
  for (int tries = 0; tries < 10; ++tries) {
    outcome = RunRanks(count, body, Impatient());
    if (tells(outcome)) break;
  }
  return outcome;
}

TEST(RankFailureTest, OfAThrownErrorEndsAllWithItsCode) {
  const RanksOutcome outcome = RunRanks(3, [](World& world) {
    return Train(world, 1, [] { throw Error(ErrorCode::kDiverged, "the loss is not finite"); });
  });
  EXPECT_THAT(outcome.codes, ElementsAre(80, 80, 80));
  EXPECT_THAT(outcome.Errors(),
              ElementsAre(AllOf(HasSubstr("rank 1 ("), HasSubstr("the loss is not finite"))));
}

TEST(RankFailureTest, OfTheSameErrorEverywhereIsSaidOnce) {
  const RanksOutcome outcome = RunRanks(4, [](World&) -> int {
    throw Error(ErrorCode::kConfig, "net.prototxt:3:1: unknown layer type");
  });
  EXPECT_THAT(outcome.codes, Each(78));
  EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr("unknown layer type")));
}

TEST(RankFailureTest, OfAKilledRankEndsTheOthersWith82) {
  const RanksOutcome outcome =
      RunRanks(3, [](World& world) { return Train(world, 2, [] { raise(SIGKILL); }); });
  EXPECT_THAT(outcome.codes, ElementsAre(82, 82, 128 + SIGKILL));
  EXPECT_THAT(outcome.Errors(), ElementsAre(AllOf(HasSubstr("rank 2 ("), HasSubstr("has ended"),
                                                  HasSubstr("last iteration was 5"))));
}

TEST(RankFailureTest, OfAnExitInMidRunEndsTheOthersWith82) {
  const RanksOutcome outcome =
      RunRanks(2, [](World& world) { return Train(world, 0, [] { _exit(0); }); });
  EXPECT_THAT(outcome.codes, ElementsAre(0, 82));
  EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr("rank 0 (")));
}

TEST(RankFailureTest, OfAnExitInSetUpEndsTheOthers) {
  const RanksOutcome outcome = RunRanks(
      3, [](World& world) { return Train(world, -1, [] {}); }, {},
      [](int rank) {
        if (rank == 1) _exit(3);
      });
  EXPECT_THAT(outcome.codes, ElementsAre(82, 3, 82));
  EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr("rank 1 (")));
}

TEST(RankFailureTest, OfAStoppedRankIsWarnedOfAndEndsTheRun) {
  const RanksOutcome outcome = RunUntil(
      [](const RanksOutcome& tried) {
        return tried.err.find("Waiting for rank 1 (") != std::string::npos &&
               tried.err.find("error: rank 1 (") != std::string::npos;
      },
      3, [](World& world) { return Train(world, 1, [] { raise(SIGSTOP); }); });
  EXPECT_THAT(outcome.codes, ElementsAre(82, 128 + SIGKILL, 82));
  EXPECT_THAT(outcome.Errors(), ElementsAre(AllOf(HasSubstr("rank 1 ("), HasSubstr("silent for"),
                                                  HasSubstr("--peer_timeout"))));
  EXPECT_THAT(outcome.err, HasSubstr("Waiting for rank 1 ("));
}

// A test on rank 0 may take as long as it likes.
TEST(RankFailureTest, IsNotARankThatWorksForLong) {
  const RanksOutcome outcome =
      RunUntil([](const RanksOutcome& tried) { return tried.err.empty(); }, 2,
               [](World& world) {
                 Communicator& group = world.group();
                 const auto end = std::chrono::steady_clock::now() + 2 * Impatient().peer_timeout;
                 if (group.rank().rank == 0) {
                   for (int batch = 0; std::chrono::steady_clock::now() < end; ++batch) {
                     std::this_thread::sleep_for(milliseconds(10));
                     group.Heartbeat(batch);
                   }
                 }
                 float value = 1;
                 group.AllReduce({&value, 1});
                 return 0;
               });
  EXPECT_THAT(outcome.codes, Each(0)) << outcome.err;
  EXPECT_EQ(outcome.err, "");
}

// Such a rank does not check its group, as in set-up or in a long computation.
TEST(RankFailureTest, EndsARankThatComputes) {
  const RanksOutcome outcome = RunRanks(2, [](World& world) -> int {
    if (world.group().rank().rank == 0) throw Error(ErrorCode::kData, "a bad record");
    static volatile bool forever = true;
    while (forever) std::this_thread::sleep_for(milliseconds(10));
    return 0;
  });
  EXPECT_THAT(outcome.codes, Each(65));
  EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr("a bad record")));
}

TEST(AgreementTest, NamesTheRanksAndTheLinesThatDiffer) {
  const RanksOutcome outcome = RunRanks(3, [](World& world) {
    const bool other = world.group().rank().rank == 2;
    RequireConsistent(
        world.group(), world.topology().names,
        {{"the program", "trainer 1"},
         {"the solver", other ? "net: 'n'\nbase_lr: 0.2\n" : "net: 'n'\nbase_lr: 0.1\n"}});
    return Train(world, -1, [] {});
  });
  EXPECT_THAT(outcome.codes, Each(76));
  EXPECT_THAT(outcome.Errors(), ElementsAre(AllOf(HasSubstr("do not agree on the solver: rank 0 ("),
                                                  HasSubstr("has 'base_lr: 0.1', rank 2 ("),
                                                  HasSubstr("has 'base_lr: 0.2'"))));
}

TEST(AgreementTest, ShowsWhereLongLinesDiffer) {
  const RanksOutcome outcome = RunRanks(2, [](World& world) {
    const std::string end = world.group().rank().rank == 0 ? "one" : "two";
    RequireConsistent(world.group(), world.topology().names,
                      {{"the data", std::string(500, 'x') + end}});
    return Train(world, -1, [] {});
  });
  EXPECT_THAT(outcome.Errors(),
              ElementsAre(AllOf(HasSubstr("has '...xxx"), HasSubstr("xxxone', rank 1 ("),
                                HasSubstr("xxxtwo'"))));
}

TEST(AgreementTest, HandsOnATextOfRank0) {
  ExpectRanks(3, [](World& world) {
    const bool first = world.group().rank().rank == 0;
    EXPECT_EQ(world.group().BroadcastString(first ? "a \xc3\xa4 path" : "other"),
              "a \xc3\xa4 path");
    EXPECT_EQ(world.group().BroadcastString(first ? "" : "other"), "");
  });
}

TEST(AgreementTest, LetsEqualRanksGoOn) {
  ExpectRanks(3, [](World& world) {
    RequireConsistent(world.group(), world.topology().names,
                      {{"the program", "trainer 1"}, {"none", ""}});
  });
}

}  // namespace
}  // namespace trainer
