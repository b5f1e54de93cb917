// Batch scripts from filled-in templates.

#include "trainer/run/jobs/job_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <regex>

#include "jobs/shell_quote.h"
#include "support/error_of.h"
#include "support/stub_commands.h"
#include "support/temp_folder.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Returns a job of the solver "solver.prototxt", changed by `change`.
template <class Change>
JobSpec JobWith(const Change& change) {
  JobSpec job;
  job.command = {"trainer", "job", "--solver=solver.prototxt"};
  job.solver = "solver.prototxt";
  job.name = "net";
  job.snapshot_prefix = "snap";
  change(job);
  return job;
}
template <class Change>
std::string Script(const Change& change) {
  return JobScript(JobWith(change));
}
JobSpec PlainJob(JobSystem system = JobSystem::kSlurm, int nodes = 1, int ranks_per_node = 1) {
  return JobWith([&](JobSpec& job) {
    job.system = system;
    job.nodes = nodes;
    job.ranks_per_node = ranks_per_node;
  });
}

// Sets every text that a batch system takes.
void SetTexts(JobSpec& job) {
  job.account = "lab";
  job.constraint = "k80";
  job.mail = "me@site";
  job.partition = "gpu";
  job.output = "my.log";
  job.time = std::chrono::hours(12);
}

// Expects that bash can read the script, and that shellcheck finds nothing if it is installed.
// (SC2016 takes a quoted name with a '$' for a mistake.)
void ExpectGoodShell(const TempFolder& folder, const std::string& script) {
  folder.Write("script.sh", script);
  const std::string check = "cd '" + folder.path() +
                            "' && bash -n script.sh && (! command -v shellcheck >/dev/null || "
                            "shellcheck --exclude=SC2016 script.sh)";
  EXPECT_EQ(std::system(check.c_str()), 0) << script;
}

TEST(JobScriptTest, TemplatesAreFilledInCompletelyAndNameTheCommand) {
  const TempFolder folder;
  for (const JobSystem system : {JobSystem::kSlurm, JobSystem::kPbs, JobSystem::kMoab,
                                 JobSystem::kLsf, JobSystem::kSqsub, JobSystem::kMpirun}) {
    for (int i = 0; i < 12; ++i) {
      JobSpec job = PlainJob(system, i % 2 == 1 ? 2 : 1, i % 3 == 2 ? 2 : 1);
      job.gpu = i % 4 >= 2;
      const bool slurm = system == JobSystem::kSlurm;  // the only system with these
      job.mpirun = slurm && i >= 6;
      if (i >= 9) SetTexts(job);
      if (i == 5) job.container = "trainer.sif";
      if (slurm && i == 6) job.seeds = 4;
      if (slurm && i == 7) job.tasks = {{"a", {"base_lr=1"}}, {"b", {"base_lr=2"}}};
      if (i == 8) job.preemptable = true;
      if (i >= 10) job.modules = {"m"};
      const std::string script = JobScript(job);
      EXPECT_THAT(script, StartsWith("#!/bin/bash\n# "));
      EXPECT_THAT(script, HasSubstr("\n# Made by: trainer job --solver=solver.prototxt\n"));
      EXPECT_FALSE(std::regex_search(script, std::regex("@[A-Z_]+@|\n#(if|else|end)"))) << script;
      ExpectGoodShell(folder, script);
    }
  }
}

TEST(JobScriptTest, EveryTextIsAWordOfTheShell) {
  const std::string script = Script([](JobSpec& job) {
    job.command = {"trainer", "job", "--solver=a b", "--line", "#x y"};
    job.solver = "my $(x) 'a'.prototxt";
    job.assignments = {"snapshot_prefix=a b"};
    job.snapshot_prefix = "a b";
    job.seeds = 2;
  });
  EXPECT_THAT(script, HasSubstr("# Made by: trainer job --solver='a b' --line '#x y'\n"));
  EXPECT_THAT(script, HasSubstr("--solver='my $(x) '\\''a'\\''.prototxt' --resume=auto"));
  EXPECT_THAT(script, HasSubstr("--set 'snapshot_prefix=a b'"));
  EXPECT_THAT(script, HasSubstr("prefix='a b'_seed_$seed"));
  EXPECT_EQ(ShellQuote(""), "''");
  EXPECT_EQ(ShellQuote("runs/a-1.2,b=c"), "runs/a-1.2,b=c");
}

TEST(JobScriptTest, RanksAreStartedByWhatTheSystemHas) {
  EXPECT_THAT(JobScript(PlainJob(JobSystem::kSlurm, 2)),
              HasSubstr("\nsrun --mpi=pmix \"$trainer\" train "));
  JobSpec mpirun = PlainJob(JobSystem::kSlurm, 2);
  mpirun.mpirun = true;
  EXPECT_THAT(JobScript(mpirun),
              AllOf(HasSubstr("\nmpirun --bind-to none \"$trainer\" train "),
                    HasSubstr("#SBATCH --signal=B:USR1@60\n"), HasSubstr("--global_batch")));
  EXPECT_THAT(JobScript(PlainJob(JobSystem::kPbs, 2)), HasSubstr("\nmpirun -np 2 "));
  EXPECT_THAT(JobScript(PlainJob(JobSystem::kPbs)), Not(HasSubstr("mpirun")));
  EXPECT_THAT(JobScript(PlainJob()),
              AllOf(HasSubstr("\nsrun \"$trainer\" train "), Not(HasSubstr("--global_batch"))));
}

TEST(JobScriptTest, EachRankHasAGpuOfItsOwn) {
  const auto with = [](JobSystem system, int nodes, int ranks, bool mpirun = false) {
    JobSpec job = PlainJob(system, nodes, ranks);
    job.mpirun = mpirun;
    SetGpus("0", &job);
    return JobScript(job);
  };
  const auto has = [](const std::string& directive, const std::string& flag) {
    return AllOf(HasSubstr("each on its own GPU"), HasSubstr(directive + "\n"), HasSubstr(flag));
  };
  EXPECT_THAT(with(JobSystem::kSlurm, 1, 1),
              AllOf(HasSubstr(" one node, on a GPU."), HasSubstr("  --gpu=0\n"),
                    HasSubstr("#SBATCH --gpus-per-task=1\n")));
  EXPECT_THAT(with(JobSystem::kSlurm, 1, 2), has("--gpus-per-task=1", "  --gpu=0\n"));
  EXPECT_THAT(with(JobSystem::kSlurm, 2, 1), has("--gpus-per-task=1", "  --gpu=0\n"));
  EXPECT_THAT(with(JobSystem::kSlurm, 2, 2, true),
              has("#SBATCH --gpus-per-node=2", "  --gpu=0,1 &\n"));
  EXPECT_THAT(with(JobSystem::kPbs, 2, 2), has(":mpiprocs=2:ngpus=2:mem=1gb", "  --gpu=0,1 &\n"));
  EXPECT_THAT(with(JobSystem::kMoab, 2, 2), has("nodes=2:ppn=2:gpus=2,mem=2gb", "  --gpu=0,1 &\n"));
  EXPECT_THAT(with(JobSystem::kLsf, 2, 2), has("#BSUB -gpu \"num=2\"", "  --gpu=0,1 \\\n"));
  EXPECT_THAT(with(JobSystem::kSqsub, 2, 2), HasSubstr("-f mpi -n 4 --gpp=1 --mpp=1g"));
  EXPECT_THAT(with(JobSystem::kMpirun, 2, 2), HasSubstr("--gpu=0,1\n"));
}

TEST(JobScriptTest, AListOfGpusSetsTheRanksOfANode) {
  JobSpec job;
  SetGpus("", &job);
  EXPECT_FALSE(job.gpu);
  SetGpus("all", &job);
  EXPECT_TRUE(job.gpu);
  EXPECT_EQ(job.ranks_per_node, 1);
  SetGpus("0,1", &job);
  EXPECT_EQ(job.ranks_per_node, 2);
  EXPECT_THAT(ErrorOf([&] { SetGpus("3", &job); }),
              testing::Pair(ErrorCode::kUsage,
                            HasSubstr("--gpu=3: in a job, the first GPU has the number 0")));
  job.ranks_per_node = 4;
  EXPECT_EQ(ErrorOf([&] { SetGpus("0,1", &job); }).first, ErrorCode::kUsage);
}

TEST(JobScriptTest, QueuesGetTheirRequestsInTheirWords) {
  EXPECT_THAT(
      Script([](JobSpec& job) {
        SetTexts(job);
        job.qos = "high";
        job.modules = {"a b", "c"};
        job.lines = {"module use x", "#SBATCH --exclusive"};
      }),
      AllOf(HasSubstr("#SBATCH --output=my.log\n#SBATCH --partition=gpu\n"
                      "#SBATCH --account=lab\n#SBATCH --qos=high\n"
                      "#SBATCH --constraint=k80\n#SBATCH --mail-user=me@site\n"
                      "#SBATCH --mail-type=END,FAIL\n#SBATCH --exclusive\nmodule use x\nset -u\n"),
            HasSubstr("\nmodule load 'a b' c\n"),
            HasSubstr("\nexport SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1}\n")));
  EXPECT_THAT(Script([](JobSpec& job) {
                SetTexts(job);
                job.system = JobSystem::kMoab;
                job.ranks_per_node = 8;
                job.gpu = true;
                job.qos = "high";
              }),
              AllOf(HasSubstr("#MSUB -l nodes=1:ppn=8:gpus=8,mem="),
                    HasSubstr("#MSUB -l walltime=12:00:00\n#MSUB -l signal=USR1@60\n"
                              "#MSUB -r n\n#MSUB -j oe\n#MSUB -o my.log\n#MSUB -q gpu\n"
                              "#MSUB -A lab\n#MSUB -l qos=high\n#MSUB -l feature=k80\n"
                              "#MSUB -M me@site\n#MSUB -m bea\n")));
  EXPECT_THAT(
      Script([](JobSpec& job) {
        SetTexts(job);
        job.system = JobSystem::kPbs;
      }),
      AllOf(HasSubstr(":mem=1gb:k80\n"), HasSubstr("#PBS -q gpu\n#PBS -A lab\n"),
            HasSubstr("#PBS -l walltime=12:00:00\n"), HasSubstr("#PBS -M me@site\n#PBS -m bea\n")));
  EXPECT_THAT(Script([](JobSpec& job) {
                SetTexts(job);
                job.system = JobSystem::kLsf;
                job.nodes = job.ranks_per_node = 2;
                job.cores = 3;
                job.memory_gib = 2;
              }),
              AllOf(HasSubstr("#BSUB -n 12\n"), HasSubstr("span[ptile=6] rusage[mem=2GB]"),
                    HasSubstr("#BSUB -W 12:00\n#BSUB -wa USR1\n#BSUB -wt 1\n"
                              "#BSUB -Q \"75 82\"\n#BSUB -o my.log\n#BSUB -q gpu\n"
                              "#BSUB -P lab\n#BSUB -R \"select[k80]\"\n#BSUB -u me@site\n"),
                    HasSubstr("--map-by ppr:2:node"), HasSubstr("--max_wall=12:00:00")));
  EXPECT_THAT(Script([](JobSpec& job) {
                job.system = JobSystem::kSqsub;
                job.nodes = 8;
                job.gpu = true;
                job.output = "log";
              }),
              AllOf(HasSubstr("\nsqsub -r 240m -q gpu -f mpi -n 8 --gpp=1 --mpp=1g -o log \\\n"),
                    HasSubstr("--max_wall=4:00:00\n")));
}

TEST(JobScriptTest, FlagsOfTrainArePassedToTheRun) {
  const std::string script = Script([](JobSpec& job) {
    job.nodes = 2;
    job.global_batch = false;
    job.run = "runs/a b";
    job.seeds = 2;
    job.train_flags = {"--strategy=easgd", "--scale_lr"};
  });
  EXPECT_THAT(script, AllOf(HasSubstr("  --strategy=easgd \\\n"), HasSubstr("  --scale_lr"),
                            HasSubstr("--run='runs/a b'_seed_\"$seed\""),
                            Not(HasSubstr("--global_batch"))));
  EXPECT_THAT(Script([](JobSpec& job) { job.run = "runs/a b"; }),
              HasSubstr("  --run='runs/a b'\n"));
  EXPECT_THAT(Script([](JobSpec& job) {
                job.run = "auto";
                job.seeds = 2;
              }),
              HasSubstr("  --run=auto \\\n"));
}

TEST(JobScriptTest, AnArrayHasATaskForEachTrial) {
  EXPECT_THAT(
      Script([](JobSpec& job) {
        job.tasks = {{"s/base_lr=0.01", {"base_lr=0.01"}}, {"s/b c", {"base_lr=0.05", "type=a b"}}};
        job.array_limit = 1;
        job.cores = 3;
        job.time = std::chrono::minutes(90);
      }),
      AllOf(HasSubstr("#SBATCH --array=1-2%1\n"), HasSubstr("#SBATCH --cpus-per-task=3\n"),
            HasSubstr("#SBATCH --time=1:30:00\n"), HasSubstr("2 runs of a sweep"),
            HasSubstr("folder=s/base_lr=0.01\n    changes=(--set base_lr=0.01)\n"),
            HasSubstr("folder='s/b c'\n"
                      "    changes=(--set base_lr=0.05 --set 'type=a b')\n")));
}

TEST(JobScriptTest, ATaskForATrialMayHaveItsOwnBatch) {
  EXPECT_THAT(Script([](JobSpec& job) {
                job.tasks = {{"s/a", {"base_lr=0.01"}, "32"}};
              }),
              HasSubstr("    changes=(--set base_lr=0.01 --batch=32)\n"));
}

// The texts contain commands that a shell would run without quotes, and marks that a second pass
// would replace.
class HostileJobTest : public testing::Test {
 protected:
  HostileJobTest() {
    for (const char* command : {"srun", "mpirun", "apptainer", "sqsub", "module", "trainer"}) {
      commands_.Add(command, "");
    }
  }
  // Runs the script, in which every text is hostile.
  template <class Change>
  void Run(const Change& change) const {
    JobSpec job = JobWith(change);
    job.solver = "d'\";touch X;$(touch X)`touch X`@COMMAND@ @TRAIN@";
    job.command = {"trainer", "job", "--solver=" + job.solver};
    job.snapshot_prefix = "snap;touch X;@TIME@";
    const std::string script = JobScript(job);
    ExpectGoodShell(folder_, script);
    const std::string run =
        Join("cd '", folder_.path(), "' && ", commands_.Path(),
             " SLURM_JOB_ID=1 SLURM_ARRAY_TASK_ID=1 PBS_NODEFILE=nodes PBS_O_WORKDIR=. ",
             "bash script.sh </dev/null >/dev/null 2>&1");
    EXPECT_EQ(std::system(run.c_str()), 0) << script;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "X")) << script;
  }

  const TempFolder folder_;
  const StubCommands commands_{folder_};
};

TEST_F(HostileJobTest, TextsAreNeitherRunNorFilledIn) {
  Run([](JobSpec& job) {
    job.seeds = 2;
    job.partition = "p;touch X";
    job.train_flags = {"--stage=s;touch X;@NAME@"};
  });
  Run([](JobSpec& job) {
    job.workers = 2;
    job.worker = {"sweep", "--set", "a=$(touch X)`touch X`@NAME@;touch X"};
  });
  Run([](JobSpec& job) { job.container = "i;touch X;@COMMAND@.sif"; });
  Run([](JobSpec& job) {
    job.system = JobSystem::kPbs;
    job.nodes = 2;
  });
  Run([](JobSpec& job) {
    job.system = JobSystem::kMpirun;
    job.nodes = 2;
  });
  for (const JobSystem system : {JobSystem::kMoab, JobSystem::kLsf}) {
    Run([&](JobSpec& job) {
      job.system = system;
      job.account = "a;touch X;@NAME@";
      job.output = "o;touch X";
      job.constraint = "c;touch X";
      job.mail = "m;touch X";
      job.modules = {"m;touch X"};
      job.run = "r;touch X";
    });
  }
  Run([](JobSpec& job) {
    job.system = JobSystem::kSqsub;
    job.output = "$(touch X)";
    job.modules = {"$(touch X)"};
  });
  const std::string train =
      " train --solver=d'\";touch X;$(touch X)`touch X`@COMMAND@ @TRAIN@ --resume=auto";
  EXPECT_THAT(commands_.Asked("srun"),
              ElementsAre(Join("trainer", train, " --stage=s;touch X;@NAME@ --set ",
                               "random_seed=1 --set snapshot_prefix=snap;touch X;@TIME@_seed_1"),
                          "trainer sweep --set a=$(touch X)`touch X`@NAME@;touch X",
                          Join("apptainer exec i;touch X;@COMMAND@.sif trainer", train)));
  EXPECT_THAT(commands_.Asked("mpirun"), testing::SizeIs(2));
}

TEST_F(HostileJobTest, TrialsAreNeitherRunNorFilledIn) {
  Run([](JobSpec& job) {
    job.tasks = {{"t;touch X;@COMMAND@", {"base_lr=0.05", "a=$(touch X)"}}};
    job.train_flags = {"--weights=w;touch X", "--gpu_cache=@X@"};
  });
  EXPECT_THAT(commands_.Asked("srun"),
              ElementsAre(HasSubstr("--weights=w;touch X --gpu_cache=@X@ --set base_lr=0.05 --set "
                                    "a=$(touch X) --run=t;touch X;@COMMAND@")));
}

TEST(JobScriptTest, RefusesControlCharacters) {
  const auto refused = [](const auto& change, const std::string& shown) {
    const auto [code, text] = ErrorOf([&] { static_cast<void>(Script(change)); });
    EXPECT_EQ(code, ErrorCode::kUsage) << shown;
    EXPECT_THAT(text, AllOf(StartsWith("'" + shown + "': "),
                            HasSubstr("a batch script cannot contain control characters")));
  };
  refused([](JobSpec& job) { job.solver = "a\ntouch X/solver.prototxt"; },
          "a\\x0atouch X/solver.prototxt");
  refused([](JobSpec& job) { job.container = "\x1b[2J.sif"; }, "\\x1b[2J.sif");
  refused([](JobSpec& job) { job.assignments = {"best_output=a\rb"}; }, "best_output=a\\x0db");
  refused([](JobSpec& job) { job.train_flags = {"--weights=w\x1b"}; }, "--weights=w\\x1b");
  refused([](JobSpec& job) { job.modules = {"p\nq"}; }, "p\\x0aq");
  refused([](JobSpec& job) { job.lines = {"p\nq"}; }, "p\\x0aq");
  refused([](JobSpec& job) { job.tasks = {{"p\nq", {}}}; }, "p\\x0aq");
  for (std::string JobSpec::*text :
       {&JobSpec::partition, &JobSpec::account, &JobSpec::qos, &JobSpec::mail, &JobSpec::constraint,
        &JobSpec::output, &JobSpec::run}) {
    refused([&](JobSpec& job) { job.*text = "p\nq"; }, "p\\x0aq");
  }
}

}  // namespace
}  // namespace trainer
