// State that asynchronous ranks share: the center of EASGD, the masses of gossip, the staleness of
// gradients.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>

#include "strategy_run.h"
#include "support/error_of.h"

namespace trainer {
namespace {

using testing::ElementsAreArray;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

class AsyncStateTest : public testing::Test, public StrategyRun {
 protected:
  static double Total(std::span<const float> numbers) {
    return std::accumulate(numbers.begin(), numbers.end(), 0.0);
  }
  // Returns the sum of a rank's own weights in a snapshot.
  double TotalOfRank(int iter, int rank) const {
    const std::string bytes = State(iter).strategy_state(rank);
    std::vector<float> numbers(bytes.size() / sizeof(float));
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
    return Total(std::span(numbers).first(numbers.size() - 1 - Saved(iter).size()));
  }
};

TEST_F(AsyncStateTest, TheCenterOfEasgdIsWhatIsSaved) {
  const std::string alone = " strategy: 'easgd' strategy_param { period: 1000 }";
  Train(Spec("max_iter: 1" + alone, kDrawnNet), 2);
  const std::vector<float> start = Saved(1);
  const auto ranks = Train(Spec("max_iter: 20" + alone, kDrawnNet), 2);
  EXPECT_THAT(Saved(20), ElementsAreArray(start)) << "nobody has moved it";
  EXPECT_NE(ranks[0].weights, ranks[1].weights);
}

// In an elastic step one side gains what the other side loses: with a rate of 0 the sum of center
// and ranks stays the same.
TEST_F(AsyncStateTest, ElasticStepsKeepTheSumOfCenterAndRanks) {
  for (const int ranks_of_one : {kAll, 1}) {
    per_machine = ranks_of_one;
    const std::string strategy = " strategy: 'easgd' strategy_param { ";
    Train(Spec("max_iter: 20" + strategy + "period: 1000 }", kDrawnNet), 2);
    const double center = Total(Saved(20)),
                 before = center + TotalOfRank(20, 0) + TotalOfRank(20, 1);
    Train(Spec("max_iter: 60" + strategy + "period: 1 elasticity: 0.3 }", kDrawnNet, 0), 2,
          *this / "s_iter_20.solverstate");
    EXPECT_NEAR(Total(Saved(60)) + TotalOfRank(60, 0) + TotalOfRank(60, 1), before, 1e-3);
    EXPECT_NE(Total(Saved(60)), center) << "it has moved";
  }
}

TEST_F(AsyncStateTest, MassesOfGossipAddUpToOne) {
  for (const int ranks_of_one : {kAll, 2, 1}) {
    per_machine = ranks_of_one;
    Train(Spec("max_iter: 200 strategy: 'gossip' strategy_param { probability: 0.5 }"), 3);
    float sum = 0;
    const caffe::SolverState state = State(200);
    for (const std::string& rank : state.strategy_state()) {
      float mass = 0;
      std::memcpy(&mass, rank.data() + rank.size() - sizeof mass, sizeof mass);
      EXPECT_GT(mass, 0);
      sum += mass;
    }
    EXPECT_NEAR(sum, 1, 1e-5);
  }
}

// Equal weights stay the same whatever is sent, because masses and weights are sent together.
TEST_F(AsyncStateTest, GossipOfEqualWeightsChangesNothing) {
  for (const int ranks_of_one : {kAll, 2, 1}) {
    per_machine = kAll;
    const auto start = Train(Spec("max_iter: 1", kDrawnNet, 0), 1);
    per_machine = ranks_of_one;
    const auto ranks = Train(
        Spec("max_iter: 100 strategy: 'gossip' strategy_param { probability: 1 }", kDrawnNet, 0),
        3);
    for (const RankResult& rank : ranks) {
      EXPECT_THAT(rank.weights, Pointwise(FloatNear(1e-5f), start[0].weights));
    }
    std::vector<float> saved = Saved(100), weights = start[0].weights;
    std::ranges::sort(saved);
    std::ranges::sort(weights);
    EXPECT_THAT(saved, Pointwise(FloatNear(1e-5f), weights));
  }
}

// Each gradient is computed with the current weights, as if the other rank did not exist.
TEST_F(AsyncStateTest, AParameterServerOfOneWorkerLearnsWhatARunAloneLearns) {
  std::atomic<bool> over{false};
  const std::string fields = "momentum: 0.9 weight_decay: 0.01 ";
  const std::string server =
      "max_iter: 6 strategy: 'parameter_server' strategy_param { servers: 2 }";
  const auto ranks = Train(Spec(fields + server, kDrawnNet), 2, "", [&](int rank, int iter) {
    if (rank == 1 && iter < 0) {
      blocks->End(1);
      over.wait(false);
    }
    if (rank == 0 && iter == kOver) over = true, over.notify_all();
  });
  // One of the 12 steps is the first step of rank 1, which never makes it.
  const auto alone = Train(Spec(fields + "max_iter: 11", kDrawnNet), 1);
  std::vector<float> saved = Saved(6), weights = alone[0].weights;
  std::ranges::sort(saved);
  std::ranges::sort(weights);
  EXPECT_THAT(saved, ElementsAreArray(weights));
}

// Rank 1 has its weights from the start, and computes its first gradient with them when the others
// have made four updates.
TEST_F(AsyncStateTest, GradientsBehindTheBoundAreLate) {
  for (const auto& [late, ranks_of_one] :
       {std::pair("APPLY", kAll), {"SCALE", kAll}, {"DROP", kAll}, {"SCALE", 1}, {"DROP", 1}}) {
    per_machine = ranks_of_one;
    std::atomic<int> steps{0};
    const auto ranks = Train(Spec(Join("max_iter: 30 strategy: 'parameter_server' strategy_param { "
                                       "staleness: 2 late: ",
                                       late, " }")),
                             3, "", [&](int rank, int iter) {
                               if (rank != 1 && iter >= 0) ++steps, steps.notify_all();
                               if (rank != 1 || iter >= 0) return;
                               for (int seen = steps; seen < 4; seen = steps) steps.wait(seen);
                             });
    EXPECT_EQ(ranks[0].result, SolveResult::kFinished);
    const bool told = ranks[0].notes.back().find("late gradients dropped") != std::string::npos;
    EXPECT_EQ(told, std::string(late) == "DROP") << ranks[0].notes.back();
  }
}

// Rank 0 has finished its steps, has made fewer than the others, and waits for them.
TEST_F(AsyncStateTest, ABoundEndsWithTheStepsOfRank0) {
  for (int run = 0; run < 10; ++run) {
    per_machine = run % 2 == 0 ? kAll : 1;
    const auto ranks = Train(Spec("max_iter: 7 strategy: 'parameter_server' "
                                  "strategy_param { staleness: 0 late: APPLY }"),
                             3);
    EXPECT_EQ(ranks[0].result, SolveResult::kFinished);
  }
}

TEST_F(AsyncStateTest, MoreServersThanRanksAreRefused) {
  const SolverSpec spec =
      Spec("max_iter: 5 strategy: 'parameter_server' strategy_param { servers: 3 }");
  SharedBlocks shared(2);
  RunRanks(2, true, "", [&](const SolverOptions& given, ThreadGroup& group) {
    ThreadWindow window(shared, group.rank().rank);
    SolverOptions options = given;
    options.window = &window;
    const auto device = MakeTestDevice(1);
    RecordingObserver observer;
    const auto [code, message] = ErrorOf([&] { Solver(spec, options, *device, observer); });
    EXPECT_EQ(code, ErrorCode::kUsage);
    EXPECT_THAT(message, HasSubstr("strategy_param.servers is 3, but there are 2 ranks"));
  });
}

}  // namespace
}  // namespace trainer
