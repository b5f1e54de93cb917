// The batch scripts that `trainer job` prints.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job.h"
#include "stub_commands.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
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
       {"",
        "--nodes=2",
        "--nodes=2 --mpirun",
        "--nodes=2 --mpirun --gpu",
        "--seeds=4 --array_limit=2",
        "--partition=slow --preemptable",
        "--gpu",
        "--ranks_per_node=2 --gpu",
        "--container=trainer.sif",
        "--account=lab --qos=high --constraint=k80 --mail=a@b.org --output=log --module m",
        "--system=pbs",
        "--system=pbs --account=lab --constraint=gpu=k80 --mail=a@b.org --output=log --gpu",
        "--system=pbs --nodes=2 --container=trainer.sif",
        "--system=moab",
        "--system=moab --ranks_per_node=8 --qos=high --gpu",
        "--system=lsf",
        "--system=lsf --nodes=2 --account=lab --constraint=k80 --mail=a@b.org --gpu",
        "--system=sqsub --gpu",
        "--system=sqsub --nodes=2 --module m",
        "--system=mpirun --nodes=4",
        "--system=mpirun --nodes=4 --gpu",
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
                    ContainsRegex("#SBATCH --signal=USR1@(8[89]|9[0-9]|[0-9]{3})\n")));
  EXPECT_THAT(Script({"--ranks_per_node=2", "--cores=5"}),
              AllOf(HasSubstr("#SBATCH --mem=9G\n"), HasSubstr("#SBATCH --cpus-per-task=5\n")));
}

TEST_F(JobScriptTest, TimesOfAllKindsBecomeHours) {
  EXPECT_THAT(Script({"--time=90"}), HasSubstr("#SBATCH --time=1:30:00\n"));
  EXPECT_THAT(Script({"--time=1-12:00:00"}), HasSubstr("#SBATCH --time=36:00:00\n"));
  EXPECT_THAT(Script({"--time=90m", "--system=pbs"}), HasSubstr("#PBS -l walltime=1:30:00\n"));
  ExpectRefused(job_, Make({"--time=soon"}), 64, "--time=soon: not a time of at least one minute");
  ExpectRefused(job_, Make({"--time=30s"}), 64, "--time=30s: not a time of at least one minute");
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

TEST_F(JobScriptTest, EachRankHasAGpuOfItsOwn) {
  for (const char* gpu : {"--gpu", "--gpu=0", "--gpu=all"}) {
    EXPECT_THAT(Script({gpu}), AllOf(HasSubstr(" one node, on a GPU."), HasSubstr("  --gpu=0\n"),
                                     HasSubstr("#SBATCH --gpus-per-task=1\n")))
        << gpu;
  }
  const auto has = [](const std::string& directive, const std::string& flag) {
    return AllOf(HasSubstr("each on its own GPU"), HasSubstr(directive + "\n"), HasSubstr(flag));
  };
  EXPECT_THAT(Script({"--ranks_per_node=2", "--gpu"}), has("--gpus-per-task=1", "  --gpu=0\n"));
  EXPECT_THAT(Script({"--nodes=2", "--gpu"}), has("--gpus-per-task=1", "  --gpu=0\n"));
  const std::vector<std::string> four = {"--nodes=2", "--ranks_per_node=2", "--gpu"};
  const auto with = [&](const char* more) {
    std::vector<std::string> words = four;
    words.emplace_back(more);
    return Script(words);
  };
  EXPECT_THAT(with("--mpirun"), has("#SBATCH --gpus-per-node=2", "  --gpu=0,1 &\n"));
  EXPECT_THAT(with("--system=pbs"), has(":mpiprocs=2:ngpus=2:mem=2gb", "  --gpu=0,1 &\n"));
  EXPECT_THAT(with("--system=moab"), has("nodes=2:ppn=2:gpus=2,mem=4gb", "  --gpu=0,1 &\n"));
  EXPECT_THAT(with("--system=lsf"), has("#BSUB -gpu \"num=2\"", "  --gpu=0,1 \\\n"));
  EXPECT_THAT(with("--system=sqsub"), HasSubstr("-f mpi -n 4 --gpp=1 --mpp=1g"));
  EXPECT_THAT(with("--system=mpirun"), HasSubstr("--gpu=0,1\n"));
  EXPECT_THAT(Script({"--gpu=0,1"}), has("--ntasks-per-node=2", "  --gpu=0\n"));
  ExpectRefused(job_, Make({"--gpu=3"}), 64, "--gpu=3: in a job, the first GPU has the number 0");
  ExpectRefused(job_, Make({"--gpu=0,1", "--ranks_per_node=4"}), 64, "--gpu=0,1: ");
  EXPECT_THAT(Script({"--set", "solver_mode=GPU"}), HasSubstr("#SBATCH --gpus-per-task=1\n"));
}

// The hand values: two snapshots and 5 s; a minute where that is an eighth of the slot at most.
TEST_F(JobScriptTest, TheSignalComesLaterInAShortSlot) {
  EXPECT_THAT(Script({"--time=2"}), HasSubstr("#SBATCH --signal=USR1@15\n"));
  EXPECT_THAT(Script({"--time=1m"}), ContainsRegex("--signal=USR1@[78]\n"));
  EXPECT_THAT(Script({"--time=8"}), HasSubstr("#SBATCH --signal=USR1@60\n"));
  EXPECT_THAT(job_.Files("snap"), testing::IsEmpty()) << "the file that measures is removed";
  job_.net = Edited(job_.net, "num_output: 10", "num_output: 200000");
  job_.Write();
  EXPECT_THAT(Make({"--time=1m"}).err, HasSubstr("less than half of each job's time is left"));
}

TEST_F(JobScriptTest, LooksAtTheFolderOfTheSnapshotsAndAtTheNodes) {
  const Outcome quiet = Make({});
  EXPECT_EQ(quiet.err, "");
  const StubCommands commands(job_.folder());
  commands.Add("sinfo", "echo 4; echo 16");
  RunOptions options = job_.options();
  options.env.push_back(commands.Path());
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"job", "--solver=solver.prototxt"};
    words.insert(words.end(), more.begin(), more.end());
    return RunProgram(words, options);
  };
  ExpectRefused(job_, run({"--cores=9", "--ranks_per_node=2", "--partition=p"}), 64,
                "--cores=9: 2 ranks per node would need 18 cores, but the largest node has 16 "
                "(sinfo); give --cores=8 or less");
  EXPECT_THAT(commands.Asked("sinfo"), ElementsAre("-h -e -o %c -p p"));
  job_.net = Edited(job_.net, "num_output: 10", "num_output: 200000");
  job_.solver = Edited(job_.solver, "\"snap\"", "\"missing/snap\"");
  job_.Write();
  EXPECT_THAT(run({"--set", "snapshot_prefix=snap"}).out, HasSubstr("--cpus-per-task=16\n"));
  const Outcome missing = run({});
  EXPECT_EQ(missing.exit_code, 73) << missing.err;
  EXPECT_THAT(missing.err, HasSubstr("missing"));
}

TEST_F(JobScriptTest, QueuesGetTheirRequestsInTheirWords) {
  const std::vector<std::string> all = {"--account=lab",   "--constraint=k80", "--mail=me@site",
                                        "--partition=gpu", "--output=my.log",  "--time=12:00:00"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), all.begin(), all.end());
    return Script(more);
  };
  EXPECT_THAT(
      with({"--qos=high", "--module=a b", "--module=c", "--line=module use x",
            "--line=#SBATCH --exclusive"}),
      AllOf(HasSubstr("#SBATCH --output=my.log\n#SBATCH --partition=gpu\n"
                      "#SBATCH --account=lab\n#SBATCH --qos=high\n"
                      "#SBATCH --constraint=k80\n#SBATCH --mail-user=me@site\n"
                      "#SBATCH --mail-type=END,FAIL\n#SBATCH --exclusive\nmodule use x\nset -u\n"),
            HasSubstr("\nmodule load 'a b' c\n"),
            HasSubstr("\nexport SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1}\n")));
  EXPECT_THAT(with({"--system=moab", "--ranks_per_node=8", "--cores=1", "--gpu", "--qos=high"}),
              AllOf(HasSubstr("#MSUB -l nodes=1:ppn=8:gpus=8,mem="),
                    HasSubstr("#MSUB -l walltime=12:00:00\n#MSUB -l signal=USR1@60\n"
                              "#MSUB -r n\n#MSUB -j oe\n#MSUB -o my.log\n#MSUB -q gpu\n"
                              "#MSUB -A lab\n#MSUB -l qos=high\n#MSUB -l feature=k80\n"
                              "#MSUB -M me@site\n#MSUB -m bea\n")));
  EXPECT_THAT(with({"--system=pbs"}),
              AllOf(HasSubstr(":mem=1gb:k80\n"), HasSubstr("#PBS -q gpu\n#PBS -A lab\n"),
                    HasSubstr("#PBS -M me@site\n#PBS -m bea\n")));
  EXPECT_THAT(with({"--system=lsf", "--nodes=2", "--ranks_per_node=2", "--cores=3"}),
              AllOf(HasSubstr("#BSUB -n 12\n"), HasSubstr("span[ptile=6] rusage[mem=2GB]"),
                    HasSubstr("#BSUB -W 12:00\n#BSUB -wa USR1\n#BSUB -wt 1\n"
                              "#BSUB -Q \"75 82\"\n#BSUB -o my.log\n#BSUB -q gpu\n"
                              "#BSUB -P lab\n#BSUB -R \"select[k80]\"\n#BSUB -u me@site\n"),
                    HasSubstr("--map-by ppr:2:node"), HasSubstr("--max_wall=12:00:00")));
  EXPECT_THAT(Script({"--system=sqsub", "--time=4:00:00", "--nodes=8", "--gpu", "--output=log"}),
              AllOf(HasSubstr("\nsqsub -r 240m -q gpu -f mpi -n 8 --gpp=1 --mpp=1g -o log \\\n"),
                    HasSubstr("--max_wall=4:00:00\n")));
}

TEST_F(JobScriptTest, FlagsOfTrainAreHandedToTheRun) {
  const std::string script = Script({"--nodes=2", "--strategy=easgd", "--run=runs/a b",
                                     "--stage_data=auto", "--scale_lr", "--seeds=2"});
  EXPECT_THAT(script, AllOf(HasSubstr("--strategy=easgd"), HasSubstr("--stage_data=auto"),
                            HasSubstr("--run='runs/a b'_seed_\"$seed\""), HasSubstr("  --scale_lr"),
                            Not(HasSubstr("--global_batch"))));
  EXPECT_THAT(Script({"--run=runs/a b"}), HasSubstr("  --run='runs/a b'\n"));
  EXPECT_THAT(Script({"--run", "--seeds=2"}), HasSubstr("  --run=auto \\\n"));
  EXPECT_THAT(Script({"--nodes=2", "--noglobal_batch"}), Not(HasSubstr("  --global_batch")));
  ExpectRefused(job_, Make({"--resume=auto"}), 64, "");
}

// The names hold what a shell would run without quotes, and what a second pass would fill in.
TEST_F(JobScriptTest, NamesAreNeitherRunNorFilledIn) {
  const std::string name = "d'\";touch X;$(touch X)`touch X`@COMMAND@ @TRAIN@";
  std::filesystem::create_directory(job_.folder() / name);
  WriteText(job_.folder() / name + "/solver.prototxt",
            Edited(job_.solver, "\"snap\"", "\"snap;touch X;@TIME@\""));
  const StubCommands commands(job_.folder());
  for (const char* command : {"srun", "mpirun", "apptainer", "sqsub", "module", "trainer"}) {
    commands.Add(command, "");
  }
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
  for (const char* system : {"moab", "lsf"}) {
    run({Join("--system=", system), "--account=a;touch X;@NAME@", "--output=o;touch X",
         "--constraint=c;touch X", "--mail=m;touch X", "--module=m;touch X", "--run=r;touch X"});
  }
  run({"--system=sqsub", "--output=$(touch X)", "--module=$(touch X)"});
  const std::string train = Join(" train --solver=", name, "/solver.prototxt --resume=auto");
  EXPECT_THAT(commands.Asked("srun"),
              ElementsAre(Join("trainer", train, " --stage=s;touch X;@NAME@ --set ",
                               "random_seed=1 --set snapshot_prefix=snap;touch X;@TIME@_seed_1"),
                          Join("apptainer exec i;touch X;@COMMAND@.sif trainer", train)));
  EXPECT_THAT(commands.Asked("mpirun"), testing::SizeIs(2));
}

TEST_F(JobScriptTest, RefusesControlCharacters) {
  const std::string why = "a batch script cannot contain control characters";
  const std::string folder = job_.folder() / "a\ntouch X";
  std::filesystem::create_directory(folder);
  WriteText(folder + "/solver.prototxt", job_.solver);
  ExpectRefused(job_, RunProgram({"job", "--solver=a\ntouch X/solver.prototxt"}, job_.options()),
                64, "'a\\x0atouch X/solver.prototxt': ", why);
  ExpectRefused(job_, Make({"--partition=p\nq"}), 64, "'p\\x0aq': ", why);
  for (const char* flag :
       {"account", "qos", "mail", "constraint", "output", "module", "line", "run", "strategy"}) {
    const Outcome outcome = Make({Join("--", flag, "=p\nq")});
    EXPECT_EQ(outcome.exit_code, 64) << flag;
    EXPECT_EQ(outcome.out, "") << flag;
  }
  ExpectRefused(job_, Make({"--container=\x1b[2J.sif"}), 64, "'\\x1b[2J.sif': ", why);
  ExpectRefused(job_, Make({"--set", "best_output=a\rb"}), 64, "'best_output=a\\x0db': ", why);
  job_.solver = Edited(job_.solver, "\"snap\"", "\"snap\\n#\"");
  job_.Write();
  ExpectRefused(job_, Make({}), 78, "solver.prototxt:", "has control characters");
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
