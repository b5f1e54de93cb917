// The batch scripts that `trainer job` prints.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job.h"
#include "stub_commands.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

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
  // Bash can read the script, and shellcheck finds nothing in it where it is installed. (SC2016
  // takes a quoted name with a '$' for a mistake.)
  void ExpectGoodShell(const std::string& script) const {
    WriteText(job_.folder() / "script.sh", script);
    const std::string check = "cd '" + job_.folder().path() +
                              "' && bash -n script.sh && (! command -v shellcheck >/dev/null || "
                              "shellcheck --exclude=SC2016 "
                              "script.sh)";
    EXPECT_EQ(std::system(check.c_str()), 0) << script;
  }

  Job job_;
};

TEST_F(JobScriptTest, TemplatesAreFilledInCompletelyAndNameTheCommand) {
  for (const char* const flags :
       {"", "--nodes=2", "--nodes=2 --mpirun", "--seeds=4", "--partition=slow --preemptable",
        "--gpu", "--ranks_per_node=2 --gpu", "--container=trainer.sif", "--system=pbs",
        "--system=pbs --nodes=2 --container=trainer.sif", "--system=mpirun --nodes=4",
        "--system=mpirun --nodes=4 --container=trainer.sif"}) {
    const std::string script = Script(SplitList(flags, ' '));
    EXPECT_THAT(script, StartsWith("#!/bin/bash\n# "));
    EXPECT_THAT(script, HasSubstr(Join("\n# Made by: trainer job --solver=solver.prototxt",
                                       *flags == '\0' ? "" : " ", flags, "\n")));
    EXPECT_FALSE(Finds(script, "@[A-Z_]+@|\n#(if|else|end)")) << script;
    ExpectGoodShell(script);
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
  EXPECT_THAT(Script({"--ranks_per_node=2", "--gpu"}),
              AllOf(HasSubstr("#SBATCH --gpus-per-task=1\n"), HasSubstr("  --gpu=0")));
}

// The names hold what a shell would run without quotes, and what a second pass would fill in.
TEST_F(JobScriptTest, NamesAreNeitherRunNorFilledIn) {
  const std::string name = "d'\";touch X;$(touch X)`touch X`@COMMAND@ @TRAIN@";
  std::filesystem::create_directory(job_.folder() / name);
  WriteText(job_.folder() / name + "/solver.prototxt",
            Edited(job_.solver, "\"snap\"", "\"snap;touch X;@TIME@\""));
  const StubCommands commands(job_.folder());
  for (const char* command : {"srun", "mpirun", "apptainer"}) commands.Add(command, "");
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"job", Join("--solver=", name, "/solver.prototxt")};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome script = RunProgram(words, job_.options());
    ASSERT_EQ(script.exit_code, 0) << script.err;
    ExpectGoodShell(script.out);
    RunOptions options = job_.options();
    options.env.insert(options.env.end(),
                       {commands.Path(), "SLURM_JOB_ID=1", "SLURM_ARRAY_TASK_ID=1",
                        "PBS_NODEFILE=nodes", "PBS_O_WORKDIR=" + job_.folder().path()});
    options.launcher = {"bash", "script.sh"};
    EXPECT_EQ(RunProgram({}, options).exit_code, 0) << script.out;
    EXPECT_FALSE(std::filesystem::exists(job_.folder() / "X")) << script.out;
  };
  run({"--seeds=2", "--partition=p;touch X", "--stage=s;touch X;@NAME@"});
  run({"--container=i;touch X;@COMMAND@.sif"});
  run({"--system=pbs", "--nodes=2"});
  run({"--system=mpirun", "--nodes=2"});
  const std::string train = Join(" train --solver=", name, "/solver.prototxt --resume=auto");
  EXPECT_THAT(commands.Asked("srun"),
              ElementsAre(Join("trainer", train, " --stage=s;touch X;@NAME@ --set ",
                               "random_seed=1 --set snapshot_prefix=snap;touch X;@TIME@_seed_1"),
                          Join("apptainer exec i;touch X;@COMMAND@.sif trainer", train)));
  EXPECT_THAT(commands.Asked("mpirun"), testing::SizeIs(2));
}

TEST_F(JobScriptTest, RefusesControlCharacters) {
  const std::string why = "a batch script cannot hold control characters";
  const std::string folder = job_.folder() / "a\ntouch X";
  std::filesystem::create_directory(folder);
  WriteText(folder + "/solver.prototxt", job_.solver);
  ExpectRefused(job_, RunProgram({"job", "--solver=a\ntouch X/solver.prototxt"}, job_.options()),
                64, "'a\\x0atouch X/solver.prototxt': ", why);
  ExpectRefused(job_, Make({"--partition=p\nq"}), 64, "'p\\x0aq': ", why);
  ExpectRefused(job_, Make({"--container=\x1b[2J.sif"}), 64, "'\\x1b[2J.sif': ", why);
  ExpectRefused(job_, Make({"--set", "best_output=a\rb"}), 64, "'best_output=a\\x0db': ", why);
  job_.solver = Edited(job_.solver, "\"snap\"", "\"snap\\n#\"");
  job_.Write();
  ExpectRefused(job_, Make({}), 64, "'snap\\x0a#': ", why);
}

TEST_F(JobScriptTest, RefusesWhatASystemDoesNotHave) {
  ExpectRefused(job_, Make({"--system=pbs", "--seeds=4"}), 64,
                "--seeds: arrays are made for Slurm");
  ExpectRefused(job_, Make({"--system=mpirun", "--mpirun"}), 64, "--mpirun: it is for Slurm");
  ExpectRefused(job_, Make({"--gpu", "--nodes=2", "--mpirun"}), 64, "--gpu: only srun gives each");
  ExpectRefused(job_, Make({"--gpu", "--nodes=2", "--system=pbs"}), 64, "--gpu: only srun gives");
  ExpectRefused(job_, Make({"--system=lsf"}), 64, "--system=lsf");
}

}  // namespace
}  // namespace trainer
