// Ranks that do not wait for each other: elastic averaging, gossip, a parameter server.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <numeric>
#include <regex>
#include <sstream>

#include "strategy_run.h"
#include "support/error_of.h"

namespace trainer {
namespace {

using testing::ElementsAreArray;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

struct Case {
  const char* strategy;
  int per_machine;  // ranks of each machine
  const char* name;
};

// Keeps the step counts of the ranks close to each other until all together have made `steps`.
class Pack {
 public:
  Pack(int ranks, int steps) : made_(static_cast<size_t>(ranks)), together_(steps) {}
  void Step(int rank) {
    constexpr int kAhead = 20;
    std::unique_lock lock(mutex_);
    const int own = ++made_[static_cast<size_t>(rank)];
    ++all_;
    changed_.notify_all();
    changed_.wait(lock,
                  [&] { return all_ >= together_ || own <= std::ranges::min(made_) + kAhead; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> made_;  // by rank
  int all_ = 0, together_;
};

class AsyncTest : public testing::TestWithParam<Case>, public StrategyRun {
 protected:
  AsyncTest() { per_machine = GetParam().per_machine; }

  SolverSpec Async(const std::string& fields, const std::string& param = "period: 3",
                   float rate = 0.05f) const {
    return Spec(
        Join(fields, " strategy: '", GetParam().strategy, "' strategy_param { ", param, " }"), net_,
        rate);
  }

  // Returns the weights in a snapshot that steps move: all except running averages.
  std::vector<float> Learned(int iter) const {
    std::vector<float> weights;
    const caffe::NetParameter model = ReadModel(*this / Join("s_iter_", iter, ".caffemodel"));
    for (const caffe::LayerParameter& layer : model.layer()) {
      if (layer.type() == "BatchNorm") continue;
      for (const caffe::BlobProto& blob : layer.blobs()) {
        weights.insert(weights.end(), blob.data().begin(), blob.data().end());
      }
    }
    return weights;
  }
  // Returns these weights of one rank, in their order in memory, where running averages come last.
  std::vector<float> LearnedByRank(int iter, int rank) const {
    const std::string bytes = State(iter).strategy_state(rank);
    std::vector<float> numbers(Learned(iter).size());
    EXPECT_LE(numbers.size() * sizeof(float), bytes.size());
    std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(float));
    return numbers;
  }

  // Switches to a net whose loss is soon near 0.
  void LearnSomethingEasy() { net_ = kDrawnNet; }

  // Returns the number of steps of each rank, from the last note.
  static std::vector<int> StepsOf(const RankResult& first) {
    std::vector<int> steps;
    std::smatch found;
    const std::string& note = first.notes.back();
    EXPECT_TRUE(std::regex_search(note, found, std::regex("steps by rank ([0-9, ]+);"))) << note;
    std::istringstream list(found[1]);
    for (std::string one; std::getline(list, one, ',');) steps.push_back(std::stoi(one));
    return steps;
  }

 private:
  const char* net_ = kStrategyNet;
};

INSTANTIATE_TEST_SUITE_P(
    Of, AsyncTest,
    testing::Values(Case{"easgd", kAll, "easgd"}, Case{"gossip", kAll, "gossip"},
                    Case{"parameter_server", kAll, "parameter_server"},
                    Case{"easgd", 2, "easgd_of_machines"}, Case{"easgd", 1, "easgd_of_lone_ranks"},
                    Case{"gossip", 2, "gossip_of_machines"},
                    Case{"gossip", 1, "gossip_of_lone_ranks"},
                    Case{"parameter_server", 2, "parameter_server_of_machines"},
                    Case{"parameter_server", 1, "parameter_server_of_lone_ranks"}),
    [](const auto& test) { return std::string(test.param.name); });

class StrategyRunTest : public testing::Test, public StrategyRun {};

const std::string kDedicated =
    "strategy: 'parameter_server' strategy_param { dedicated_servers: true ";

// If one rank alone got the cores, gossip would have little of its weights in the mean.
TEST_P(AsyncTest, MakesAllStepsOfTheRunAndLearns) {
  LearnSomethingEasy();
  Pack pack(3, 800);
  const auto ranks = Train(Async("max_iter: 300 momentum: 0.5 test_iter: 2 test_interval: 300 "
                                 "test_initialization: false "),
                           3, "", [&](int rank, int iter) {
                             if (iter >= 0 && iter < kOver) pack.Step(rank);
                           });
  const std::vector<int> steps = StepsOf(ranks[0]);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(std::accumulate(steps.begin(), steps.end(), 0), 900);
  for (const RankResult& rank : ranks) EXPECT_EQ(rank.result, SolveResult::kFinished);
  ASSERT_EQ(ranks[0].tests.size(), 1u);
  EXPECT_LT(ranks[0].tests.back(), 1.2f) << "log(4) at first";
  EXPECT_TRUE(ranks[1].tests.empty());
}

// One rank that makes steps and one that applies its gradients equal one rank, bit for bit: on one
// machine, and on a machine each.
TEST_F(StrategyRunTest, WithOneWorkerADedicatedServerIsARunAlone) {
  for (const char* rule :
       {"momentum: 0.9 weight_decay: 0.01 ", "type: 'Adam' ", "clip_gradients: 0.05 "}) {
    const std::string fields = Join("max_iter: 12 snapshot: 5 ", rule);
    per_machine = kAll;
    Train(Spec(fields, kDrawnNet), 1);
    const std::vector<float> alone = Saved(12), before = Saved(5);
    for (const int ranks_of_one : {kAll, 1}) {
      per_machine = ranks_of_one;
      Train(Spec(fields + kDedicated + "servers: 1 } ", kDrawnNet), 2);
      EXPECT_THAT(Saved(12), ElementsAreArray(alone)) << rule;
      EXPECT_THAT(Saved(5), ElementsAreArray(before)) << rule;
      Train(Spec(fields + kDedicated + "servers: 2 } ", kDrawnNet), 3);
      EXPECT_THAT(Saved(12), ElementsAreArray(alone)) << rule << "of two servers";
      Train(Spec(fields + kDedicated + "servers: 1 } ", kDrawnNet), 2,
            *this / "s_iter_5.solverstate");
      EXPECT_THAT(Saved(12), ElementsAreArray(alone)) << rule << "resumed";
    }
  }
}

// The factor is a power of two: with 2^67 the first updates are skipped, and not sent.
TEST_F(StrategyRunTest, WithALossScaleADedicatedServerGetsWhatARunAloneLearnsFrom) {
  const std::string large =
      Join("global_grad_scale: 1.4757395258967641e20 global_grad_scale_adaptive: true ", kDrawnNet);
  for (const char* rule :
       {"loss_scale: 1024 momentum: 0.9 ", "loss_scale: 0 momentum: 0.9 ",
        "loss_scale: 0 type: 'Adam' loss_scale_window: 2 clip_gradients: 0.05 "}) {
    const std::string fields = Join("max_iter: 12 snapshot: 5 ", rule);
    per_machine = kAll;
    Train(Spec(fields, large), 1);
    const std::vector<float> alone = Saved(12);
    const caffe::SolverState state = State(12);
    EXPECT_EQ(state.loss_scale().skipped() > 0, fields.find("loss_scale: 0") != fields.npos);
    EXPECT_LT(state.loss_scale().skipped(), 9u) << "else nothing is learned";
    for (const char* snapshot : {"", "s_iter_5.solverstate"}) {
      const std::string path = *snapshot == 0 ? "" : *this / snapshot;
      const std::vector<RankResult> ranks =
          Train(Spec(fields + kDedicated + "servers: 1 } ", large), 2, path);
      EXPECT_THAT(Saved(12), ElementsAreArray(alone)) << rule << snapshot;
      EXPECT_EQ(State(12).loss_scale().ShortDebugString(), state.loss_scale().ShortDebugString())
          << rule << snapshot;
    }
  }
}

// This step rule wraps another one: its gradients must be divided by the factor only once.
TEST_F(StrategyRunTest, WithALossScaleADedicatedServerMovesAnRbmAsARunAloneDoes) {
  const std::string rbm = R"(
layer { name: "data" type: "DummyData" top: "x"
        dummy_data_param { shape { dim: 8 dim: 6 } data_filler { type: "uniform" } } }
layer { name: "rbm" type: "RBM" bottom: "x" top: "h" top: "error"
        loss_weight: 0 loss_weight: 1
        rbm_param { num_output: 5 weight_filler { type: "gaussian" std: 0.1 } } }
)";
  const std::string fields = "type: 'CD' max_iter: 6 momentum: 0.5 loss_scale: 1024 ";
  Train(Spec(fields, rbm), 1);
  const std::vector<float> alone = Saved(6);
  Train(Spec(fields + kDedicated + "servers: 1 } ", rbm), 2);
  EXPECT_THAT(Saved(6), ElementsAreArray(alone));
}

TEST_P(AsyncTest, LearnsWithALossScaleOfEachRank) {
  LearnSomethingEasy();
  const auto ranks =
      Train(Async("max_iter: 300 momentum: 0.5 loss_scale: 0 test_iter: 2 test_interval: 100 "), 3);
  EXPECT_LT(ranks[0].tests.back(), 1.2f) << "log(4) at first";
}

// Covers servers on the machine of a worker, and servers on machines without workers.
TEST_F(StrategyRunTest, DedicatedServersMakeNoSteps) {
  for (const int ranks_of_one : {kAll, 3, 2, 1}) {
    per_machine = ranks_of_one;
    const auto ranks = Train(Spec("max_iter: 300 momentum: 0.5 test_iter: 2 test_interval: 100 " +
                                      kDedicated + "servers: 2 } ",
                                  kDrawnNet),
                             4);
    const std::string& note = ranks[0].notes.back();
    EXPECT_THAT(note, testing::ContainsRegex("steps by rank [1-9][0-9]*, [1-9][0-9]*, 0, 0;"));
    EXPECT_LT(ranks[0].tests.back(), 1.2f) << "log(4) at first";
    for (const RankResult& rank : ranks) EXPECT_EQ(rank.result, SolveResult::kFinished);
  }
}

// This holds however far the others are ahead of rank 0.
TEST_P(AsyncTest, SavesInIterationsThatAreDueAndReportsEachOnce) {
  const auto ranks = Train(Async("max_iter: 405 snapshot: 10 "), 3);
  const std::vector<int>& saved = ranks[0].snapshots;
  EXPECT_EQ(saved.back(), 405);
  for (size_t i = 0; i + 1 < saved.size(); ++i) {
    EXPECT_EQ(saved[i] % 10, 0);
    EXPECT_LT(saved[i], saved[i + 1]);
  }
  const std::vector<int>& reported = ranks[0].iters;
  EXPECT_EQ(std::ranges::adjacent_find(reported, std::ranges::greater_equal()), reported.end());
  EXPECT_TRUE(ranks[1].snapshots.empty());
}

// Regression: a rank that had lost its data ended the run while rank 0 was writing the last
// snapshot.
TEST_P(AsyncTest, NoneEndsBeforeRank0HasWritten) {
  Train(Async("max_iter: 40 "), 3, "", [&](int, int iter) {
    if (iter != kOver) return;
    EXPECT_TRUE(std::filesystem::exists(*this / "s_iter_40.solverstate"));
  });
}

// Rank 1 makes its second step when rank 0 has reached iteration 30.
TEST_P(AsyncTest, HoldsNobodyUpByASlowRank) {
  std::atomic<int> first{0};
  const auto ranks = Train(Async("max_iter: 40 "), 3, "", [&](int rank, int iter) {
    if (rank == 0) first = iter, first.notify_all();
    if (rank != 1 || iter < 0) return;
    for (int seen = first; seen < 30; seen = first) first.wait(seen);
  });
  EXPECT_EQ(ranks[0].result, SolveResult::kFinished);
  const std::vector<int> steps = StepsOf(ranks[0]);
  EXPECT_EQ(steps[0] + steps[1] + steps[2], 120);
  EXPECT_LT(steps[1], 33);
}

// Rank 2 ends silently after its fifth step; the others wait for that in their first step.
TEST_P(AsyncTest, LeavesADeadRankBehindAndGoesOn) {
  if (per_machine < kAll) GTEST_SKIP() << "what starts ranks on several machines ends all of them";
  LearnSomethingEasy();
  std::atomic<bool> over{false};
  const SolverSpec spec = Async("max_iter: 300 snapshot: 100 test_iter: 2 test_interval: 300 ");
  std::atomic<int> steps{0};
  testing::internal::CaptureStderr();
  const auto ranks = Train(spec, 3, "", [&](int rank, int iter) {
    if (rank == 2 && iter >= 0) {
      const bool dies = ++steps == 5;
      if (dies) blocks->End(2);
      steps.notify_all();
      if (dies) over.wait(false);
    }
    for (int seen = steps; rank != 2 && iter >= 0 && seen < 5; seen = steps) steps.wait(seen);
    if (rank == 0 && iter == kOver) over = true, over.notify_all();
  });
  const std::string err = testing::internal::GetCapturedStderr();
  EXPECT_EQ(ranks[0].result, SolveResult::kFinished);
  EXPECT_EQ(ranks[1].result, SolveResult::kFinished);
  EXPECT_THAT(err, HasSubstr("rank 2 (a thread) has ended without an error message after 5 steps; "
                             "the other ranks continue"));
  EXPECT_EQ(ranks[0].snapshots.back(), 300);
  const bool alike = std::string(GetParam().strategy) != "gossip";  // whichever rank gets the cores
  if (alike) {
    EXPECT_LT(ranks[0].tests.back(), 1.2f) << "log(4) at first";
  }
}

// Without rate and momentum, steps do not change the weights, whichever rank makes them first.
TEST_P(AsyncTest, GoesOnFromItsSnapshot) {
  Train(Async("max_iter: 200 momentum: 0.5 "), 3);
  const caffe::SolverState state = State(200);
  const std::string strategy = GetParam().strategy;
  EXPECT_EQ(state.strategy(), strategy);
  EXPECT_EQ(state.strategy_state_size(), strategy == "parameter_server" ? 0 : 3);
  testing::internal::CaptureStderr();
  const auto rest =
      Train(Async("max_iter: 201 ", "period: 3", 0), 3, *this / "s_iter_200.solverstate");
  EXPECT_EQ(testing::internal::GetCapturedStderr().find("start from the common weights"),
            std::string::npos);
  EXPECT_EQ(rest[0].result, SolveResult::kFinished);
  EXPECT_EQ(rest[0].iters.front(), 200);
  EXPECT_THAT(Learned(201), Pointwise(FloatNear(1e-4f), Learned(200)));
  for (int rank = 0; strategy == "easgd" && rank < 3; ++rank) {
    EXPECT_THAT(LearnedByRank(201, rank), ElementsAreArray(LearnedByRank(200, rank))) << rank;
  }
}

TEST_P(AsyncTest, NeedsRanksThatReachEachOther) {
  const SolverSpec spec = Async("max_iter: 5 ");
  RunRanks(2, true, "", [&](const SolverOptions& options, ThreadGroup&) {
    const auto device = MakeTestDevice(1);
    RecordingObserver observer;
    const auto [code, message] = ErrorOf([&] { Solver(spec, options, *device, observer); });
    EXPECT_EQ(code, ErrorCode::kUnavailable);
    EXPECT_THAT(message, HasSubstr("needs ranks that exchange data at any time"));
  });
}

}  // namespace
}  // namespace trainer
