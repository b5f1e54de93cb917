// Strategies of ranks on several machines. Ranks of one machine simulate two machines.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "rank_job.h"
#include "trainer/checkpoint/solver_state.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

bool HasMpirun() { return std::system("mpirun --version >/dev/null 2>&1") == 0; }

class MachinesTest : public RankJob {
 protected:
  void SetUp() override {
    if (!HasMpirun()) GTEST_SKIP() << "there is no mpirun here";
  }

  // Returns the loss of the last test. It is log(10) at first.
  static double LastTest(const Outcome& outcome) {
    static const std::regex pattern("Test net output #\\d+: loss = ([-+.\\w]+)");
    double loss = 100;
    const auto end = std::sregex_iterator();
    for (auto at = std::sregex_iterator(outcome.err.begin(), outcome.err.end(), pattern); at != end;
         ++at) {
      loss = std::stod((*at)[1]);
    }
    return loss;
  }
};

std::vector<std::string> Flags(const std::string& strategy, const std::vector<std::string>& set) {
  std::vector<std::string> flags = {"--strategy=" + strategy};
  for (const std::string& field : set) flags.insert(flags.end(), {"--set", field});
  return flags;
}

const std::vector<std::string> kDedicated = {"strategy_param.dedicated_servers=true"};

struct Apart {
  std::string strategy;
  std::vector<std::string> set;
};

std::vector<Apart> AllApart() {
  return {{"easgd", {"strategy_param.period=3"}},
          {"gossip", {"strategy_param.probability=0.5"}},
          {"parameter_server", {}},
          {"parameter_server", kDedicated}};
}

// Two machines need as many steps as one machine to learn the same. The bound is loose, and a run
// is repeated if other programs keep ranks from their cores.
TEST_F(MachinesTest, StrategiesThatGoApartTrainTestAndGoOnFromTheirSnapshots) {
  for (const Apart& apart : AllApart()) {
    std::vector<std::string> set = apart.set;
    set.insert(set.end(), {"max_iter=60", "test_interval=30", "snapshot=30", "momentum=0.5"});
    Outcome outcome = TrainOnTwo(Flags(apart.strategy, set), 2);
    for (int tries = 0; tries < 5 && LastTest(outcome) >= 1.9; ++tries) {
      outcome = TrainOnTwo(Flags(apart.strategy, set), 2);
    }
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("Strategy " + apart.strategy + ": steps by rank "));
    EXPECT_EQ(outcome.err.find("continue and take over its remaining steps"), std::string::npos)
        << outcome.err;
    EXPECT_EQ(outcome.err.find("silent"), std::string::npos) << outcome.err;
    EXPECT_LT(LastTest(outcome), 1.9) << apart.strategy << ", 2.3 at first\n" << outcome.err;
    EXPECT_THAT(job_.Files("."), IsEmpty());
    const LoadedState saved = ReadState(job_.folder() / "snap_iter_60.solverstate");
    EXPECT_EQ(saved.state.strategy(), apart.strategy);

    std::vector<std::string> rest = Flags(apart.strategy, set);
    rest.insert(rest.end(), {"--set", "max_iter=70", "--resume=auto"});
    outcome = TrainOnTwo(rest, 2);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("snap_iter_60.solverstate"));
    EXPECT_EQ(outcome.err.find("the common weights"), std::string::npos) << outcome.err;
    EXPECT_EQ(job_.Files("snap_iter_70").size(), 2u);
    for (const std::string& file : job_.Files("snap_iter")) unlink((job_.folder() / file).c_str());
  }
}

// A worker on one machine and its server on the other one have the gradients of one rank.
TEST_F(MachinesTest, AServerOnAnotherMachineLearnsWhatOneRankLearns) {
  ASSERT_EQ(Train({}).exit_code, 0);
  const std::string one = Bytes(kLast);
  const Outcome outcome = TrainOnTwo(Flags("parameter_server", kDedicated));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(Bytes(kLast), one);
  EXPECT_THAT(outcome.err, HasSubstr("steps by rank 20, 0; 20 exchanges"));
}

TEST_F(MachinesTest, StagesLearnWhatOneRankLearns) {
  ASSERT_EQ(Train({}).exit_code, 0);
  const std::vector<float> one = Weights(kLast);
  for (const int each : {1, 2}) {
    std::vector<std::string> flags = {"--strategy=pipeline", "--pipeline_stages=auto"};
    const Outcome outcome = TrainOnTwo(flags, each);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    ExpectNear(Weights(kLast), one, 1e-4f);
    flags.push_back("--snapshot=snap_iter_10.solverstate");
    const std::string bytes = Bytes(kLast);
    ASSERT_EQ(TrainOnTwo(flags, each).exit_code, 0);
    EXPECT_EQ(Bytes(kLast), bytes);
  }
}

TEST_F(MachinesTest, LocalMeansAreThoseOfOneMachine) {
  const std::vector<std::string> flags = Flags("local", {"strategy_param.period=3"});
  std::vector<std::string> one_machine = flags, rounded = flags;
  one_machine.push_back("--ranks=2");
  ASSERT_EQ(Train(one_machine).exit_code, 0);
  const std::vector<float> weights = Weights(kLast);
  const Outcome outcome = TrainOnTwo(flags);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  ExpectNear(Weights(kLast), weights, 1e-5f);
  const std::string bytes = Bytes(kLast);
  rounded.push_back("--exchange_type=bf16");
  ASSERT_EQ(TrainOnTwo(rounded).exit_code, 0);
  EXPECT_EQ(Bytes(kLast), bytes) << "gradients may be rounded, weights not";
}

TEST_F(MachinesTest, WeightsInOneMemoryAreRefused) {
  const Outcome outcome = TrainOnTwo(Flags("central_storage", {}));
  EXPECT_EQ(outcome.exit_code, 69) << outcome.err;
  EXPECT_THAT(outcome.Errors(), ElementsAre(AllOf(HasSubstr("strategy 'central_storage' stores"),
                                                  HasSubstr("these ranks share none"))));
}

class LongMachinesTest : public LongRankJob {
 protected:
  void SetUp() override {
    if (!HasMpirun()) GTEST_SKIP() << "there is no mpirun here";
  }
};

TEST_F(LongMachinesTest, StopTogetherAndSaveWhenTheRankOfAnotherMachineIsAskedTo) {
  for (const char* strategy : {"easgd", "gossip", "parameter_server", "pipeline"}) {
    const std::vector<std::string> flags =
        strategy == std::string("pipeline")
            ? std::vector<std::string>{"--strategy=pipeline", "--pipeline_stages=auto"}
            : Flags(strategy, {});
    const auto program = Start(flags, TwoMachines(job_.TrainCommand(flags), 1));
    kill(processes_[1], SIGTERM);
    const Outcome outcome = program->Wait();
    EXPECT_EQ(outcome.exit_code, 75) << strategy << outcome.err;
    EXPECT_THAT(outcome.Errors(), IsEmpty());
    EXPECT_EQ(job_.Files("snap_iter").size(), 2u) << strategy << outcome.err;
    ExpectAllGone();
    for (const std::string& file : job_.Files("snap_iter")) unlink((job_.folder() / file).c_str());
  }
}

}  // namespace
}  // namespace trainer
