// Ranks that mpirun starts. The tests are skipped without mpirun.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "rank_job.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

using MpirunTest = RankJob;
using LongMpirunTest = LongRankJob;

// Returns the command of Open MPI's mpirun, as root and with more ranks than cores.
std::vector<std::string> MpiRun(int ranks) {
  return {"mpirun", "--allow-run-as-root", "--oversubscribe", "-np", std::to_string(ranks)};
}

#define SKIP_WITHOUT_MPIRUN()                                 \
  if (std::system("mpirun --version >/dev/null 2>&1") != 0) { \
    GTEST_SKIP() << "there is no mpirun here";                \
  }

TEST_F(MpirunTest, RanksLearnWhatOneLearns) {
  SKIP_WITHOUT_MPIRUN();
  ASSERT_EQ(Train({}).exit_code, 0);
  const std::vector<float> one = Weights(kLast);
  const Outcome outcome = Train({"--global_batch"}, MpiRun(2));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("2 ranks on 1 machine; sums through shared memory"));
  ExpectNear(Weights(kLast), one, 1e-5f);
}

TEST_F(MpirunTest, RanksOfSeveralMachinesLearnWhatOneLearns) {
  SKIP_WITHOUT_MPIRUN();
  ASSERT_EQ(Train({}).exit_code, 0);
  const std::vector<float> one = Weights(kLast);
  for (const int each : {1, 2}) {
    const Outcome outcome = TrainOnTwo({"--global_batch"}, each);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(" ranks on 2 machines; sums through "));
    ExpectNear(Weights(kLast), one, 1e-5f);
    const std::string bytes = Bytes(kLast);
    ASSERT_EQ(TrainOnTwo({"--global_batch"}, each).exit_code, 0);
    EXPECT_EQ(Bytes(kLast), bytes);
  }
}

TEST_F(MpirunTest, RanksWithAnotherSolverAreRefused) {
  SKIP_WITHOUT_MPIRUN();
  std::vector<std::string> launcher = MpiRun(1);
  const std::vector<std::string> command = job_.TrainCommand({"--set", "base_lr=0.25"});
  launcher.push_back(ProgramPath());
  launcher.insert(launcher.end(), command.begin(), command.end());
  launcher.insert(launcher.end(), {":", "-np", "1"});
  const Outcome outcome = Train({}, launcher);
  EXPECT_EQ(outcome.exit_code, 76) << outcome.err;
  EXPECT_THAT(outcome.Errors(),
              ElementsAre(AllOf(HasSubstr("do not agree on the solver and its nets: rank 0 ("),
                                HasSubstr("'base_lr: 0.25'"), HasSubstr("'base_lr: 0.01'"))));
}

TEST_F(MpirunTest, RanksRefuseToStartOthers) {
  SKIP_WITHOUT_MPIRUN();
  const Outcome outcome = Train({"--ranks=2"}, MpiRun(2));
  EXPECT_EQ(outcome.exit_code, 64);
  EXPECT_THAT(outcome.err, HasSubstr("mpirun or srun already started the ranks"));
}

TEST_F(LongMpirunTest, RanksEndWhenOneIsKilled) {
  SKIP_WITHOUT_MPIRUN();
  const auto program = Start({}, MpiRun(2));
  kill(processes_[1], SIGKILL);
  const Outcome outcome = program->Wait();
  EXPECT_NE(outcome.exit_code, 0);
  RemoveWhatIsLeft();
}

TEST_F(MpirunTest, RanksSayABadNetOnceAndEnd) {
  SKIP_WITHOUT_MPIRUN();
  job_.net = Edited(job_.net, "type: \"Pooling\"", "type: \"Poling\"");
  job_.Write();
  const Outcome outcome = Train({}, MpiRun(2));
  EXPECT_EQ(outcome.exit_code, 78) << outcome.err;
  EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr("Poling")));
}

}  // namespace
}  // namespace trainer
