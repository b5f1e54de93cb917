// `trainer job`: batch scripts, and those of scripts/jobs, which it printed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job.h"
#include "support/source_folder.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class JobScriptTest : public testing::Test {
 protected:
  JobScriptTest() { job_.Write(); }
  Outcome Make(const std::vector<std::string>& more) const {
    std::vector<std::string> command = {"job", "--solver=solver.prototxt"};
    command.insert(command.end(), more.begin(), more.end());
    return RunProgram(command, job_.options());
  }
  std::string Script(const std::vector<std::string>& more) const {
    const Outcome outcome = Make(more);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.out;
  }
  // What bash says of a script's syntax.
  void ExpectGoodShell(const std::string& script) const {
    WriteText(job_.folder() / "script.sh", script);
    EXPECT_EQ(std::system(Join("bash -n '", job_.folder() / "script.sh", "'").c_str()), 0)
        << script;
  }

  Job job_;
};

// Each names the command that made it.
TEST_F(JobScriptTest, ThoseOfTheTreeAreWhatItPrints) {
  for (const char* name : {"slurm_node", "slurm_nodes", "slurm_nodes_mpirun", "slurm_array",
                           "slurm_preemptable", "slurm_gpu", "slurm_apptainer", "pbs", "mpirun"}) {
    const std::string text = ReadText(Join(SourceFolder(), "/scripts/jobs/", name, ".sh"));
    const std::string mark = "\n# Made by: trainer ";
    const size_t at = text.find(mark);
    ASSERT_NE(at, std::string::npos) << name;
    const std::string words =
        text.substr(at + mark.size(), text.find('\n', at + 1) - at - mark.size());
    const Outcome outcome = RunProgram(SplitList(words, ' '), job_.options());
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, text) << name;
    ExpectGoodShell(text);
  }
}

TEST_F(JobScriptTest, AsksForWhatTheNetNeeds) {
  const std::string small = Script({});
  EXPECT_THAT(small,
              AllOf(HasSubstr("#SBATCH --mem=1G\n"), HasSubstr("#SBATCH --cpus-per-task=1\n"),
                    HasSubstr("#SBATCH --signal=USR1@60\n"), HasSubstr("#SBATCH --time=4:00:00\n"),
                    HasSubstr("#SBATCH --requeue\n"), HasSubstr("#SBATCH --open-mode=append\n")));
  job_.net = Edited(job_.net, "num_output: 10", "num_output: 200000");
  job_.Write();
  // 157 million weights of four bytes: those, gradients, momentum and a copy of a snapshot.
  const std::string large = Script({});
  EXPECT_THAT(large,
              AllOf(HasSubstr("#SBATCH --mem=5G\n"), HasSubstr("#SBATCH --cpus-per-task=32\n"),
                    HasSubstr("#SBATCH --signal=USR1@90\n")));
  EXPECT_THAT(Script({"--ranks_per_node=2", "--cores=5"}),
              AllOf(HasSubstr("#SBATCH --mem=9G\n"), HasSubstr("#SBATCH --cpus-per-task=5\n")));
}

TEST_F(JobScriptTest, TimesOfAllKindsBecomeHours) {
  EXPECT_THAT(Script({"--time=90"}), HasSubstr("#SBATCH --time=1:30:00\n"));
  EXPECT_THAT(Script({"--time=1-12:00:00"}), HasSubstr("#SBATCH --time=36:00:00\n"));
  EXPECT_THAT(Script({"--time=90m", "--system=pbs"}), HasSubstr("#PBS -l walltime=1:30:00\n"));
  ExpectRefused(job_, Make({"--time=soon"}), 64, "--time=soon: a time of a minute or more");
  ExpectRefused(job_, Make({"--time=30s"}), 64, "--time=30s: a time of a minute or more");
}

TEST_F(JobScriptTest, WordsForTheShellAreQuoted) {
  std::filesystem::copy(job_.folder() / "solver.prototxt", job_.folder() / "my $(x) 'a'.prototxt");
  const Outcome outcome = RunProgram(
      {"job", "--solver=my $(x) 'a'.prototxt", "--set", "snapshot_prefix=a b", "--seeds=2"},
      job_.options());
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("--solver='my $(x) '\\''a'\\''.prototxt' --resume=auto"));
  EXPECT_THAT(outcome.out, HasSubstr("--set 'snapshot_prefix=a b'"));
  EXPECT_THAT(outcome.out, HasSubstr("prefix='a b'_seed_$seed"));
  ExpectGoodShell(outcome.out);
}

TEST_F(JobScriptTest, RanksAreStartedByWhatTheSystemHas) {
  EXPECT_THAT(Script({"--nodes=2"}), HasSubstr("\nsrun --mpi=pmix \"$trainer\" train "));
  EXPECT_THAT(Script({"--nodes=2", "--mpirun"}),
              AllOf(HasSubstr("\nmpirun --bind-to none \"$trainer\" train "),
                    HasSubstr("#SBATCH --signal=B:USR1@60\n"), HasSubstr("--global_batch")));
  EXPECT_THAT(Script({"--nodes=2", "--system=pbs"}), HasSubstr("\nmpirun -np 2 "));
  EXPECT_THAT(Script({"--system=pbs"}), Not(HasSubstr("mpirun")));
  EXPECT_THAT(Script({}),
              AllOf(HasSubstr("\nsrun \"$trainer\" train "), Not(HasSubstr("--global_batch"))));
}

TEST_F(JobScriptTest, RefusesWhatASystemDoesNotHave) {
  ExpectRefused(job_, Make({"--system=pbs", "--seeds=4"}), 64,
                "--seeds: arrays are made for Slurm");
  ExpectRefused(job_, Make({"--system=mpirun", "--mpirun"}), 64, "--mpirun: it is for Slurm");
  ExpectRefused(job_, Make({"--gpu", "--nodes=2"}), 64, "--gpu: a run trains on one GPU");
  ExpectRefused(job_, Make({"--system=lsf"}), 64, "--system=lsf");
}

}  // namespace
}  // namespace trainer
