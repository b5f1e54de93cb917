// Queries to the batch system about a run's job; functions replace its commands.

#include "trainer/run/jobs/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <map>

#include "jobs/job_liveness.h"
#include "support/error_of.h"
#include "support/log_collector.h"
#include "trainer/base/text/text.h"
#include "trainer/run/jobs/time_limit.h"

namespace trainer {
namespace {

using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

// Simulates a batch system with these variables and answers, and records the commands.
class SchedulerTest : public testing::Test {
 protected:
  SchedulerTest() {
    access_.variable = [this](const char* name) {
      const auto found = variables_.find(name);
      return found == variables_.end() ? std::string() : found->second;
    };
    access_.run = [this](const std::vector<std::string>& words, std::chrono::milliseconds) {
      asked_.push_back(JoinList(words, " "));
      const auto found = answers_.find(words[0] + " " + words.back());
      return found == answers_.end() ? CommandResult{1, "", words[0] + " exited with code 1"}
                                     : found->second;
    };
    access_.now = [this] { return now_; };
  }
  void Answer(const std::string& command, const std::string& out) {
    answers_[command] = {0, out, ""};
  }
  // Returns the seconds until the deadline.
  std::optional<int64_t> Deadline(const std::string& max_wall = "", int exit_code = 75) {
    const auto end = RunDeadline(max_wall, exit_code, access_);
    if (!end) return std::nullopt;
    return std::chrono::duration_cast<seconds>(*end - now_).count();
  }

  std::chrono::steady_clock::time_point now_ = LoadTime() + seconds(100);
  std::map<std::string, std::string> variables_;
  std::map<std::string, CommandResult> answers_;
  std::vector<std::string> asked_;
  SchedulerAccess access_;
  const LogCollector log_;
};

TEST_F(SchedulerTest, KnowsTheJobByItsVariables) {
  EXPECT_EQ(CurrentJob(access_).system, BatchSystem::kNone);
  variables_["PBS_JOBID"] = "7.host";
  EXPECT_EQ(CurrentJob(access_).Name(), "PBS job 7.host");
  variables_["SLURM_JOB_ID"] = "123";
  EXPECT_EQ(CurrentJob(access_).Name(), "Slurm job 123");
  variables_["SLURM_ARRAY_JOB_ID"] = "120";
  EXPECT_EQ(CurrentJob(access_).id, "123");
  variables_["SLURM_ARRAY_TASK_ID"] = "4";
  EXPECT_EQ(CurrentJob(access_).id, "120_4");
}

TEST_F(SchedulerTest, MaxWallCountsFromTheStartOfTheProcess) {
  variables_["SLURM_JOB_ID"] = "123";
  EXPECT_EQ(Deadline("0:05:00"), 200);
  EXPECT_THAT(log_.lines, ElementsAre(HasSubstr("Time limit: 0:05:00 from the start of this "
                                                "process (--max_wall)")));
  EXPECT_EQ(Deadline("none"), std::nullopt);
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(SchedulerTest, NamesTheExitCodeThatTheUserChose) {
  Deadline("0:05:00");
  Deadline("0:05:00", 0);
  EXPECT_THAT(log_.lines, ElementsAre(HasSubstr("and exits with code 75 before that"),
                                      HasSubstr("and exits with code 0 before that")));
}

TEST_F(SchedulerTest, RefusesWhatIsNoTime) {
  for (const std::string wrong : {"soon", "0", "1:2:3:4"}) {
    EXPECT_THAT(ErrorOf([&] { RequireWallTime(wrong); }),
                Pair(ErrorCode::kUsage, HasSubstr("--max_wall=" + wrong)));
  }
  for (const char* good : {"", "none", "4:00:00", "90", "1h30m"}) RequireWallTime(good);
}

TEST_F(SchedulerTest, OutsideOfAJobThereIsNoLimit) {
  EXPECT_EQ(Deadline(), std::nullopt);
  EXPECT_THAT(log_.lines, IsEmpty());
}

TEST_F(SchedulerTest, SlurmsTimeIsTheLimitByDefault) {
  variables_["SLURM_JOB_ID"] = "123";
  Answer("squeue %L", "1-00:00:01\n");
  EXPECT_EQ(Deadline(), 86401);
  EXPECT_THAT(asked_, ElementsAre("squeue -h -j 123 -o %L"));
  EXPECT_THAT(log_.lines, ElementsAre(HasSubstr("the time left for Slurm job 123 (squeue)")));
}

TEST_F(SchedulerTest, NewerSlurmNeedsNoQuestion) {
  variables_["SLURM_JOB_ID"] = "123";
  variables_["SLURM_JOB_END_TIME"] = Join(std::time(nullptr) + 1000);
  const std::optional<int64_t> left = Deadline();
  ASSERT_TRUE(left);
  EXPECT_GE(*left, 990);
  EXPECT_LE(*left, 1000);
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(SchedulerTest, PbsReportsTheLimitAndTheTimeUsed) {
  variables_["PBS_JOBID"] = "7.host";
  Answer("qstat 7.host",
         "Job Id: 7.host\n    Resource_List.walltime = 01:00:01\n"
         "    resources_used.walltime = 01:00:00\n");
  EXPECT_EQ(Deadline(), 1);
  EXPECT_THAT(asked_, ElementsAre("qstat -f 7.host"));
  Answer("qstat 7.host", "    Walltime.Remaining = 77\n");
  EXPECT_EQ(Deadline(), 77);
}

TEST_F(SchedulerTest, WithoutQstatTheWalltimeOfTheJobCounts) {
  variables_["PBS_JOBID"] = "7.host";
  variables_["PBS_WALLTIME"] = "300";
  EXPECT_EQ(Deadline(), 200) << "the job started with this process, 100 s ago";
  EXPECT_THAT(log_.lines, ElementsAre(HasSubstr("(PBS_WALLTIME, ")));
}

TEST_F(SchedulerTest, AQueueThatGivesNoTimeIsAWarning) {
  variables_["SLURM_JOB_ID"] = "123";
  EXPECT_EQ(Deadline(), std::nullopt);
  EXPECT_THAT(log_.lines, ElementsAre(HasSubstr("The time left for Slurm job 123 is unknown: "
                                                "squeue exited with code 1. Give --max_wall")));
  Answer("squeue %L", "what\n");
  EXPECT_EQ(Deadline(), std::nullopt);
  EXPECT_THAT(log_.lines.back(), HasSubstr("squeue answers 'what', which is not a time"));
}

TEST_F(SchedulerTest, AnUnlimitedJobHasNoLimit) {
  variables_["SLURM_JOB_ID"] = "123";
  Answer("squeue %L", "UNLIMITED\n");
  EXPECT_EQ(Deadline(), std::nullopt);
  EXPECT_THAT(log_.lines, ElementsAre("Time limit: none for Slurm job 123 (squeue)"));
}

TEST_F(SchedulerTest, ALimitInAnotherCenturyIsNoOverflow) {
  variables_["SLURM_JOB_ID"] = "123";
  variables_["SLURM_JOB_END_TIME"] = "9000000000000000";
  EXPECT_EQ(Deadline(), 24 * 36500 * 3600ll);
}

TEST_F(SchedulerTest, RequeuesARunningJobOnce) {
  variables_["SLURM_JOB_ID"] = "123";
  Answer("squeue %T", "RUNNING\n");
  Answer("scontrol 123", "");
  RequeueJob(access_);
  EXPECT_THAT(asked_, ElementsAre("squeue -h -j 123 -o %T", "scontrol requeue 123"));
  EXPECT_THAT(log_.lines, ElementsAre("--requeue: Slurm job 123 is queued again"));
}

TEST_F(SchedulerTest, ACancelledJobIsNotQueuedAgain) {
  variables_["SLURM_JOB_ID"] = "123";
  Answer("squeue %T", "COMPLETING\n");
  RequeueJob(access_);
  EXPECT_THAT(asked_, ElementsAre("squeue -h -j 123 -o %T"));
  EXPECT_THAT(log_.lines, ElementsAre(HasSubstr("Slurm job 123 is COMPLETING already")));
}

TEST_F(SchedulerTest, ARefusedRequeueIsAWarning) {
  variables_["SLURM_JOB_ID"] = "123";
  Answer("squeue %T", "RUNNING\n");
  RequeueJob(access_);
  EXPECT_THAT(log_.lines, ElementsAre(HasSubstr("was not queued again: scontrol exited with code "
                                                "1. Submit it again")));
}

TEST_F(SchedulerTest, OutsideOfSlurmRequeueIsAWarning) {
  RequeueJob(access_);
  EXPECT_THAT(asked_, IsEmpty());
  EXPECT_THAT(
      log_.lines,
      ElementsAre(HasSubstr("--requeue: this is not a Slurm job (SLURM_JOB_ID is not set)")));
}

// One task of an array has the job id of the whole array, which must not be queued again.
TEST_F(SchedulerTest, OfAnArrayOneTaskAloneIsQueuedAgain) {
  variables_ = {
      {"SLURM_JOB_ID", "123"}, {"SLURM_ARRAY_JOB_ID", "123"}, {"SLURM_ARRAY_TASK_ID", "4"}};
  Answer("squeue %T", "RUNNING\n");
  Answer("scontrol 123_4", "");
  RequeueJob(access_);
  EXPECT_THAT(asked_, ElementsAre("squeue -h -j 123_4 -o %T", "scontrol requeue 123_4"));
}

TEST(JobIsOverTest, ReadsTheStatesOfSlurm) {
  const auto over = [](const std::string& out, const std::string& problem = "") {
    return JobIsOver(BatchSystem::kSlurm, {problem.empty() ? 0 : 1, out, problem});
  };
  for (const char* state : {"RUNNING\n", "SUSPENDED\n", "CONFIGURING\n", "STAGE_OUT\n"}) {
    EXPECT_FALSE(over(state)) << state;
  }
  for (const char* state : {"PENDING\n", "COMPLETED\n", "CANCELLED\n", ""}) {
    EXPECT_TRUE(over(state)) << state;
  }
  EXPECT_TRUE(over("", "squeue exited with code 1: Invalid job id specified"));
  EXPECT_FALSE(over("", "squeue exited with code 1: Unable to contact slurm controller"));
}

TEST(JobIsOverTest, ReadsTheStatesOfPbs) {
  const auto over = [](const std::string& out, const std::string& problem = "") {
    return JobIsOver(BatchSystem::kPbs, {problem.empty() ? 0 : 1, out, problem});
  };
  EXPECT_FALSE(over("    job_state = R\n"));
  EXPECT_TRUE(over("    job_state = Q\n"));
  EXPECT_TRUE(over("    job_state = F\n"));
  EXPECT_TRUE(over("", "qstat exited with code 153: Unknown Job Id 7"));
  EXPECT_FALSE(over("", "qstat did not answer in 30 s"));
  EXPECT_FALSE(JobIsOver(BatchSystem::kNone, {}));
}

}  // namespace
}  // namespace trainer
