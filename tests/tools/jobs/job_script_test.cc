// The batch scripts that `trainer job` prints.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "in_process.h"
#include "job.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class JobScriptTest : public testing::Test {
 protected:
  JobScriptTest() { job_.Write(); }
  Outcome Make(const std::vector<std::string>& more) const {
    std::vector<std::string> command = {"job", "--solver=solver.prototxt"};
    command.insert(command.end(), more.begin(), more.end());
    return RunHere(command, job_.options());
  }
  std::string Script(const std::vector<std::string>& more) const {
    const Outcome outcome = Make(more);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.out;
  }
  // Expects that bash can read the script, and that shellcheck finds nothing if it is installed.
  // (SC2016 takes a quoted name with a '$' for a mistake.)
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

TEST_F(JobScriptTest, FlagsBecomeTheScriptAndItsFirstLines) {
  for (const char* const flags :
       {"", "--nodes=2 --mpirun --gpu", "--seeds=4 --array_limit=2",
        "--account=lab --qos=high --constraint=k80 --mail=a@b.org --output=log --module m",
        "--system=pbs --nodes=2 --container=trainer.sif", "--system=moab --gpu",
        "--system=lsf --strategy=easgd", "--system=sqsub", "--system=mpirun --nodes=4"}) {
    const std::string script = Script(SplitList(flags, ' '));
    EXPECT_THAT(script, StartsWith("#!/bin/bash\n# "));
    EXPECT_THAT(script, HasSubstr(Join("\n# Made by: trainer job --solver=solver.prototxt",
                                       *flags == '\0' ? "" : " ", flags, "\n")));
    EXPECT_FALSE(Finds(script, "@[A-Z_]+@|\n#(if|else|end)")) << script;
    ExpectGoodShell(script);
  }
  EXPECT_THAT(Script({"--time=90m", "--ranks_per_node=2", "--cores=5"}),
              AllOf(HasSubstr("#SBATCH --time=1:30:00\n"), HasSubstr("#SBATCH --mem=2G\n"),
                    HasSubstr("#SBATCH --cpus-per-task=5\n")));
  EXPECT_THAT(Script({"--set", "solver_mode=GPU"}), HasSubstr("#SBATCH --gpus-per-task=1\n"));
  EXPECT_THAT(Script({"--gpu=0,1"}), HasSubstr("#SBATCH --ntasks-per-node=2\n"));
  EXPECT_THAT(Script({"--nodes=2", "--noglobal_batch"}), Not(HasSubstr("  --global_batch")));
  EXPECT_EQ(Make({}).err, "");
}

TEST_F(JobScriptTest, FlagsOfTrainAreHandedToTheRun) {
  const std::string script = Script({"--nodes=2", "--strategy=easgd", "--run=runs/a b",
                                     "--local_copy=auto", "--scale_lr", "--seeds=2"});
  EXPECT_THAT(script, AllOf(HasSubstr("--strategy=easgd"), HasSubstr("--local_copy=auto"),
                            HasSubstr("--run='runs/a b'_seed_\"$seed\""), HasSubstr("  --scale_lr"),
                            Not(HasSubstr("--global_batch"))));
  ExpectRefused(job_, Make({"--resume=auto"}), 64, "");
}

TEST_F(JobScriptTest, RefusesWhatNoScriptCanHave) {
  ExpectRefused(job_, Make({"--partition=p\nq"}), 64,
                "'p\\x0aq': ", "a batch script cannot contain control characters");
  ExpectRefused(job_, Make({"--time=soon"}), 64, "--time=soon: not a time of at least one minute");
  job_.solver = Edited(job_.solver, "\"snap\"", "\"snap\\n#\"");
  job_.Write();
  ExpectRefused(job_, Make({}), 78, "solver.prototxt:", "has control characters");
  job_.solver = Edited(job_.solver, "\"snap\\n#\"", "\"missing/snap\"");
  job_.Write();
  const Outcome missing = Make({});
  EXPECT_EQ(missing.exit_code, 73) << missing.err;
  EXPECT_THAT(missing.err, HasSubstr("missing"));
}

TEST_F(JobScriptTest, RefusesWhatASystemDoesNotHave) {
  ExpectRefused(job_, Make({"--system=pbs", "--seeds=4"}), 64,
                "--seeds: this flag works with --system=slurm, not with pbs");
  ExpectRefused(job_, Make({"--system=mpirun", "--mpirun"}), 64, "--mpirun: this flag works with ");
  ExpectRefused(job_, Make({"--system=lsf", "--qos=a"}), 64,
                "--qos: this flag works with --system=slurm, moab, not with lsf");
  ExpectRefused(job_, Make({"--system=mpirun", "--account=a"}), 64,
                "--account: this flag works with ");
  ExpectRefused(job_, Make({"--system=sge"}), 64, "--system=sge");
}

}  // namespace
}  // namespace trainer
