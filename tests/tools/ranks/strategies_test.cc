// Strategies by name, and with processes that are killed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rank_job.h"
#include "trainer/checkpoint/solver_state.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using StrategiesTest = RankJob;

constexpr const char* kApart[] = {"easgd", "gossip", "parameter_server"};

std::string NamedStrategies(const char* strategy) { return std::string("--strategy=") + strategy; }

TEST_F(StrategiesTest, TrainTestAndSave) {
  for (const char* strategy : {"local", "easgd", "gossip", "parameter_server"}) {
    const Outcome outcome =
        Train({"--ranks=2", NamedStrategies(strategy), "--set", "strategy_param.period=3"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(std::string("Strategy ") + strategy + ": "));
    EXPECT_THAT(outcome.err, HasSubstr("Iteration 20, Testing net (#0)"));
    EXPECT_EQ(outcome.err.find("take over its remaining steps"), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find("warning: "), std::string::npos) << outcome.err;
    EXPECT_THAT(job_.Files("."), IsEmpty());
    EXPECT_EQ(ReadState(job_.folder() / "snap_iter_20.solverstate").state.strategy(), strategy);
  }
}

TEST_F(StrategiesTest, CentralStorageIsSynchronousBitForBitInProcesses) {
  ASSERT_EQ(Train({"--ranks=2"}).exit_code, 0);
  const std::string whole = Bytes(kLast);
  const Outcome outcome = Train({"--ranks=2", "--strategy=central_storage"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("Strategy central_storage: "));
  EXPECT_EQ(Bytes(kLast), whole);
  EXPECT_THAT(job_.Files("."), IsEmpty());
}

TEST_F(StrategiesTest, LocalGoesOnBitForBitInProcesses) {
  const std::string local = "--strategy=local", period = "strategy_param.period=3";
  ASSERT_EQ(Train({"--ranks=2", local, "--set", period}).exit_code, 0);
  const std::string whole = Bytes(kLast), state = Bytes("snap_iter_20.solverstate");
  const Outcome rest =
      Train({"--ranks=2", local, "--set", period, "--snapshot=snap_iter_10.solverstate"});
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_EQ(Bytes(kLast), whole);
  EXPECT_EQ(Bytes("snap_iter_20.solverstate"), state);
}

TEST_F(StrategiesTest, SayWhereAResumedRunDoesNotRepeatAnother) {
  for (const auto& [strategy, repeats] : {std::pair("easgd", false), {"local", true}}) {
    ASSERT_EQ(Train({"--ranks=2", NamedStrategies(strategy)}).exit_code, 0);
    // This uses the last snapshot, because an earlier one is skipped if rank 0 reaches it after the
    // next is due.
    const Outcome rest = Train({"--ranks=2", NamedStrategies(strategy),
                                "--snapshot=snap_iter_20.solverstate", "--set", "max_iter=25"});
    ASSERT_EQ(rest.exit_code, 0) << rest.err;
    const bool says = rest.err.find("depends on the timing of the ranks") != std::string::npos;
    EXPECT_NE(says, repeats) << strategy << rest.err;
  }
}

TEST_F(StrategiesTest, RefuseMoreServersThanRanksOnce) {
  const Outcome outcome =
      Train({"--ranks=2", "--strategy=parameter_server", "--set", "strategy_param.servers=3"});
  EXPECT_EQ(outcome.exit_code, 64);
  EXPECT_THAT(outcome.Errors(),
              ElementsAre(HasSubstr("strategy_param.servers is 3, but there are 2 "
                                    "ranks")));
}

TEST_F(StrategiesTest, RefuseServersThatLeaveNobodyToTrain) {
  const Outcome outcome =
      Train({"--ranks=2", "--strategy=parameter_server", "--set",
             "strategy_param.dedicated_servers=true", "--set", "strategy_param.servers=2"});
  EXPECT_EQ(outcome.exit_code, 64);
  EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr("strategy_param.servers is 2, but with "
                                                      "dedicated_servers none of the 2 ranks is "
                                                      "left to train")));
}

TEST_F(StrategiesTest, OfAnUnknownNameAreRefused) {
  EXPECT_EQ(Train({"--ranks=2", "--strategy=esgd"}).exit_code, 64);
  const Outcome outcome = Train({"--ranks=2", "--set", "strategy='esgd'"});
  EXPECT_EQ(outcome.exit_code, 78);
  EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr("unknown strategy 'esgd'. Did you mean")));
}

using LongStrategiesTest = LongRankJob;

TEST_F(LongStrategiesTest, GoOnWithoutAWorkerThatWasKilled) {
  for (const char* strategy : kApart) {
    const auto program = Start({"--ranks=3", NamedStrategies(strategy)});
    kill(processes_[1], SIGKILL);
    program->WaitForLine("the other ranks continue");
    program->WaitForLine("Iteration ");
    program->Signal(SIGTERM);
    const Outcome outcome = program->Wait();
    EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
    EXPECT_THAT(outcome.err,
                HasSubstr("The other ranks continue without it"));  // the launcher's message
    EXPECT_THAT(outcome.Errors(), IsEmpty());
    EXPECT_EQ(job_.Files("snap_iter").size(), 2u);
    ExpectAllGone();
    for (const std::string& file : job_.Files("snap_iter")) unlink((job_.folder() / file).c_str());
  }
}

TEST_F(LongStrategiesTest, EndWithRank0) {
  const auto program = Start({"--ranks=2", "--strategy=easgd"});
  kill(processes_[0], SIGKILL);
  const Outcome outcome = program->Wait();
  EXPECT_EQ(outcome.exit_code, 82) << outcome.err;
  EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr("rank 0 (")));
  RemoveWhatIsLeft();
}

TEST_F(LongStrategiesTest, EndWithAServerThatHeldWeights) {
  const auto program = Start({"--ranks=2", "--strategy=parameter_server", "--set",
                              "strategy_param.dedicated_servers=true"});
  kill(processes_[1], SIGKILL);
  const Outcome outcome = program->Wait();
  EXPECT_EQ(outcome.exit_code, 82) << outcome.err;
  EXPECT_THAT(outcome.Errors(), ElementsAre(AllOf(HasSubstr("rank 1 ("), HasSubstr("killed"),
                                                  HasSubstr("newest snapshot"))));
  EXPECT_EQ(outcome.err.find("The other ranks continue without it"), std::string::npos)
      << outcome.err;
  RemoveWhatIsLeft();
}

TEST_F(LongStrategiesTest, StopTogetherWhenOneRankIsAskedTo) {
  const auto program = Start({"--ranks=2", "--strategy=gossip"});
  kill(processes_[1], SIGTERM);
  const Outcome outcome = program->Wait();
  EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
  EXPECT_EQ(job_.Files("snap_iter").size(), 2u);
  ExpectAllGone();
}

}  // namespace
}  // namespace trainer
