// The cores and the number of threads that ranks compute with.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>

#include "rank_job.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::HasSubstr;
using testing::Not;

cpu_set_t CoresOf(pid_t process) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  EXPECT_EQ(sched_getaffinity(process, sizeof cores, &cores), 0);
  return cores;
}

// Returns the first core that this process may run on, in the form of taskset.
std::string FirstCore() {
  const cpu_set_t cores = CoresOf(0);
  int core = 0;
  while (core < CPU_SETSIZE && !CPU_ISSET(static_cast<size_t>(core), &cores)) ++core;
  return std::to_string(core);
}

bool Has(const std::string& program) {
  return std::system((program + " --version >/dev/null 2>&1").c_str()) == 0;
}

int Times(const std::string& text, const std::string& part) {
  int times = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++times;
  return times;
}

class RankCoresTest : public LongRankJob {};

TEST_F(RankCoresTest, AreEachRanksOwnUnderTheirLauncher) {
  const cpu_set_t all = CoresOf(0);
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "there is one core";
  const auto program = Start({"--ranks=2"});
  const cpu_set_t first = CoresOf(processes_[0]), second = CoresOf(processes_[1]);
  cpu_set_t both;
  CPU_AND(&both, &first, &second);
  EXPECT_EQ(CPU_COUNT(&both), 0);
  EXPECT_EQ(CPU_COUNT(&first), CPU_COUNT(&all) / 2);
  EXPECT_EQ(CPU_COUNT(&second), CPU_COUNT(&all) / 2);
  program->Signal(SIGTERM);
  EXPECT_EQ(program->Wait().exit_code, 75);
}

class ShortRankCoresTest : public RankJob {};

TEST_F(ShortRankCoresTest, AreNotSharedInSilence) {
  if (!Has("taskset")) GTEST_SKIP() << "there is no taskset here";
  const Outcome outcome = Train({"--ranks=2"}, {"taskset", "-c", FirstCore()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(Times(outcome.err, "Ranks 0, 1 share 1 core of this machine"), 1) << outcome.err;
  EXPECT_THAT(Train({"--ranks=1"}, {"taskset", "-c", FirstCore()}).err, Not(HasSubstr("share")));
}

TEST_F(ShortRankCoresTest, AreNotSharedInSilenceOnAnyMachine) {
  if (!Has("taskset") || !Has("mpirun")) GTEST_SKIP() << "there is no taskset or no mpirun here";
  const std::string script =
      "export TRAINER_MACHINE=m$((OMPI_COMM_WORLD_RANK / 2)); exec taskset -c " + FirstCore() +
      " \"$@\"";
  const Outcome outcome =
      Train({"--global_batch"}, {"mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to",
                                 "none", "-np", "4", "sh", "-c", script, "sh"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* ranks : {"Ranks 0, 1 share 1 core", "Ranks 2, 3 share 1 core"}) {
    EXPECT_EQ(Times(outcome.err, ranks), 1) << outcome.err;
  }
}

// Without binding, the ranks of a machine share all its cores, and each uses its part.
TEST_F(ShortRankCoresTest, GiveEachRankItsPartOfTheThreads) {
  if (!Has("mpirun")) GTEST_SKIP() << "there is no mpirun here";
  const cpu_set_t all = CoresOf(0);
  const int threads = std::max(1, CPU_COUNT(&all) / 2);
  RunOptions options = job_.options();
  options.env = {Join("OMP_NUM_THREADS=", 64)};
  options.launcher = {
      "mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", "2"};
  const Outcome outcome = RunProgram(job_.TrainCommand(), options);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err,
              HasSubstr(Join(threads, threads == 1 ? " thread" : " threads",
                             " (OMP_NUM_THREADS=64, affinity mask of ", CPU_COUNT(&all))));
  EXPECT_THAT(outcome.err, HasSubstr("shared by 2 ranks"));
}

}  // namespace
}  // namespace trainer
