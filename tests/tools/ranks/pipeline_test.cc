// A net in stages: splitting, planning and training it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "in_process.h"
#include "rank_job.h"
#include "support/json_reader.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kPipeline = "--strategy=pipeline", kAuto = "--pipeline_stages=auto";

using PipelineJobTest = RankJob;

// The batch of 16 is computed in parts of 2, and with four or more stages in parts of 1.
TEST_F(PipelineJobTest, EndsWithTheWeightsOfOneRankAndGoesOnThere) {
  ASSERT_EQ(Train({}).exit_code, 0);
  const std::vector<float> one_rank = Weights(kLast);
  for (const char* ranks : {"--ranks=2", "--ranks=4"}) {
    const Outcome outcome = Train({ranks, kPipeline, kAuto});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    ExpectNear(Weights(kLast), one_rank, 1e-4f);
    EXPECT_THAT(outcome.err, HasSubstr("Stage 1: layers "));
    EXPECT_THAT(outcome.err, HasSubstr("Iteration 20, Testing net (#0)"));
    EXPECT_EQ(outcome.err.find("warning: "), std::string::npos) << outcome.err;
    EXPECT_THAT(job_.Files("."), IsEmpty());
  }
  const Outcome rest = Train({"--snapshot=snap_iter_10.solverstate"});
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  ExpectNear(Weights(kLast), one_rank, 1e-4f);
}

TEST_F(PipelineJobTest, TakesTheStagesOfTheLayers) {
  job_.net = Edited(job_.net, "name: \"ip1\"", "name: \"ip1\" stage: 1");
  job_.Write();
  const Outcome outcome = Train({"--ranks=2", kPipeline});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("Stage 0: layers conv1 to pool2, "));
  EXPECT_THAT(outcome.err, HasSubstr("Stage 1: layers ip1 to loss, "));
  const Outcome other = Train({"--ranks=2"});
  EXPECT_EQ(other.exit_code, 0) << other.err;
  EXPECT_THAT(other.err, HasSubstr("`stage` has no effect with strategy 'synchronous'"));
}

TEST_F(PipelineJobTest, SaysOnceWhatIsWrong) {
  const Outcome none = Train({"--ranks=2", kPipeline});
  EXPECT_EQ(none.exit_code, 78) << none.err;
  EXPECT_THAT(none.Errors(), ElementsAre(HasSubstr("no layer has a `stage`, but each of the 2 "
                                                   "ranks")));
  const Outcome many = Train({"--ranks=12", kPipeline, kAuto});
  EXPECT_EQ(many.exit_code, 78) << many.err;
  EXPECT_THAT(many.Errors(), ElementsAre(HasSubstr("the net cannot be divided into 12 stages")));
}

TEST_F(PipelineJobTest, IsPlannedBesideOneRank) {
  const auto plan = [&](std::vector<std::string> more) {
    std::vector<std::string> command = {"plan", "--solver=solver.prototxt", kPipeline, kAuto};
    command.insert(command.end(), more.begin(), more.end());
    return RunHere(command, job_.options());
  };
  const Outcome text = plan({"--ranks=2,4"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("2 stages, 8 micro-batches of 2 records"));
  EXPECT_THAT(text.out, HasSubstr("4 stages, 16 micro-batches of 1 records"));
  EXPECT_EQ(plan({}).exit_code, 64);
}

TEST_F(PipelineJobTest, TheMemoryOfARankIsThatOfItsStage) {
  const Outcome plan =
      RunHere({"plan", "--solver=solver.prototxt", kPipeline, kAuto, "--ranks=2", "--json"},
              job_.options());
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  const JsonValue planned = ReadJson(plan.out);
  const auto largest = static_cast<size_t>(planned[0]["largest_bytes"].number);
  EXPECT_LT(largest, planned[0]["one_rank_bytes"].number);
  const auto train = [&](size_t bytes) {
    return Train({"--ranks=2", kPipeline, kAuto, Join("--memory=", bytes / 1024 + 1, "K")});
  };
  const Outcome enough = train(largest);
  EXPECT_EQ(enough.exit_code, 0) << enough.err;
  EXPECT_EQ(enough.err.find("computed again in backward"), std::string::npos);
  const Outcome little = train(1 << 20);
  EXPECT_EQ(little.exit_code, 81) << little.err;
  EXPECT_THAT(little.Errors(), ElementsAre(HasSubstr("--memory: the run may use 1.00 MiB but")));
}

using LongPipelineTest = LongRankJob;

TEST_F(LongPipelineTest, EndsWithASentenceWhenAStageIsKilled) {
  for (const size_t victim : {0u, 1u}) {
    const auto program = Start({"--ranks=3", kPipeline, kAuto});
    kill(processes_[victim], SIGKILL);
    const Outcome outcome = program->Wait();
    EXPECT_EQ(outcome.exit_code, 82) << outcome.err;
    EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr(Join("rank ", victim, " ("))));
    RemoveWhatIsLeft();
  }
}

TEST_F(LongPipelineTest, StopsAndSavesWhenAnyStageIsAskedTo) {
  const auto program = Start({"--ranks=2", kPipeline, kAuto});
  kill(processes_[1], SIGTERM);
  const Outcome outcome = program->Wait();
  EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
  EXPECT_THAT(outcome.Errors(), IsEmpty());
  EXPECT_EQ(job_.Files("snap_iter").size(), 2u);
  ExpectAllGone();
}

}  // namespace
}  // namespace trainer
