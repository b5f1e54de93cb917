// The order in which ranks call their communicator. One call too many on one rank stops a run for
// good, and a call in another place may change the last bits of the result, so that a change of the
// order must be deliberate. tests/golden/collectives has the calls of each strategy whose ranks
// step together; TRAINER_UPDATE_COLLECTIVES=1 rewrites the files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "strategy_run.h"
#include "support/source_folder.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Returns a net of four fully connected layers in `stages` stages.
std::string StagesNet(int stages) {
  std::string net = R"(
layer { name: "rows" type: "HDF5Data" top: "x" top: "label" include { phase: TRAIN }
        hdf5_data_param { source: "ROWS" batch_size: 12 shuffle: true } }
layer { name: "test" type: "HDF5Data" top: "x" top: "label" include { phase: TEST }
        hdf5_data_param { source: "ROWS" batch_size: 13 } }
)";
  std::string bottom = "x";
  for (int i = 0; i < 4; ++i) {
    const std::string top = Join("ip", i);
    net += Join("layer { name: '", top, "' type: 'InnerProduct' bottom: '", bottom, "' top: '", top,
                "' stage: ", i * stages / 4, " inner_product_param { num_output: ", i < 3 ? 9 : 4,
                " weight_filler { type: 'xavier' } } }\n");
    bottom = top;
  }
  return net + "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip3' bottom: 'label' }\n";
}

// A test before the first iteration and after every third one, a snapshot after every fourth.
constexpr char kCollectivesFields[] =
    "max_iter: 8 momentum: 0.9 test_iter: 2 test_interval: 3 snapshot: 4 ";

class CollectivesTest : public testing::Test, public StrategyRun {
 protected:
  void SetUp() override { TRAINER_CPU_ONLY("a GPU's gradients go through another communicator"); }

  // Fails if the ranks' calls differ. Returns the calls that they have in common.
  static std::string CallsOf(const std::vector<RankResult>& ranks) {
    for (const RankResult& rank : ranks) EXPECT_EQ(rank.collectives, ranks[0].collectives);
    return ranks[0].collectives;
  }

  // Returns the calls of a whole run, of one that a signal to the last rank stops after iteration
  // 5, and of the rest of that run.
  std::string CallsOfRuns(const SolverSpec& spec, int ranks) {
    std::string calls = Join("== ranks: ", ranks, "\n", CallsOf(Train(spec, ranks)));
    SignalWatch watch({});
    signals = &watch;
    calls += "== stopped\n" + CallsOf(Train(spec, ranks, "", [&](int rank, int iter) {
               if (rank == ranks - 1 && iter == 5) raise(SIGTERM);
             }));
    signals = nullptr;
    calls += "== resumed\n" + CallsOf(Train(spec, ranks, *this / "s_iter_5.solverstate"));
    return calls;
  }

  template <class Spec>
  void ExpectCalls(const std::string& name, const std::vector<int>& ranks, const Spec& spec) {
    std::string calls;
    for (const int count : ranks) calls += CallsOfRuns(spec(count), count);
    const std::string path = Join(SourceFolder(), "/tests/golden/collectives/", name, ".txt");
    if (std::getenv("TRAINER_UPDATE_COLLECTIVES") != nullptr) WriteText(path, calls);
    EXPECT_EQ(calls, ReadText(path)) << "TRAINER_UPDATE_COLLECTIVES=1 writes " << path << " anew";
  }
  template <class Spec>
  void ExpectCalls(const std::string& name, const Spec& spec) {
    ExpectCalls(name, {1, 2, 4}, spec);
  }
};

TEST_F(CollectivesTest, OfSynchronousRanks) {
  ExpectCalls("synchronous", [&](int) { return Spec(kCollectivesFields); });
}

TEST_F(CollectivesTest, OfSynchronousRanksThatClipAndAverage) {
  ExpectCalls("clipped", [&](int) {
    return Spec(Join(kCollectivesFields, "clip_gradients: 0.1 ema_decay: 0.9 iter_size: 2 "));
  });
}

TEST_F(CollectivesTest, OfLbfgs) {
  ExpectCalls("lbfgs", {1, 2}, [&](int) {
    return Spec("type: 'LBFGS' max_iter: 8 test_iter: 2 test_interval: 3 snapshot: 4 ");
  });
}

TEST_F(CollectivesTest, OfVirtualRanks) {
  ExpectCalls("virtual_ranks",
              [&](int) { return Spec(Join(kCollectivesFields, "virtual_ranks: 4 ")); });
}

TEST_F(CollectivesTest, OfLocalSteps) {
  ExpectCalls("local", [&](int) {
    return Spec(Join(kCollectivesFields, "strategy: 'local' strategy_param { period: 3 ",
                     "synchronous_iter: 2 } "));
  });
}

TEST_F(CollectivesTest, OfCentralStorage) {
  ExpectCalls("central_storage",
              [&](int) { return Spec(Join(kCollectivesFields, "strategy: 'central_storage' ")); });
}

TEST_F(CollectivesTest, OfAPipeline) {
  ExpectCalls("pipeline", {2, 4}, [&](int stages) {
    return Spec(
        Join(kCollectivesFields, "strategy: 'pipeline' strategy_param { micro_batches: 4 } "),
        StagesNet(stages));
  });
}

}  // namespace
}  // namespace trainer
