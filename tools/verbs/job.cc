#include <iostream>
#include <string>
#include <vector>

#include "flag_groups.h"
#include "job_flags.h"
#include "run_flags.h"
#include "trainer/base/log/log.h"
#include "trainer/cli/verb.h"
#include "trainer/run/jobs/job_resources.h"
#include "trainer/run/solver_source.h"

namespace trainer {
namespace {

// Prints a script for a batch system that runs `trainer train` with the given flags.
class JobVerb final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    flags_ = &flags;
    flags.Bind(&job_.solver, "solver", "FILE", "the solver").Required();
    flags.BindChoice(
        &job_.system, "system", "SYSTEM",
        {{"slurm", JobSystem::kSlurm},
         {"pbs", JobSystem::kPbs},
         {"moab", JobSystem::kMoab},
         {"lsf", JobSystem::kLsf},
         {"sqsub", JobSystem::kSqsub},
         {"mpirun", JobSystem::kMpirun}},
        "which script to print: slurm, pbs, moab, lsf, sqsub, or mpirun with a hosts file");
    DeclareSet(flags, &job_.assignments);
    DeclareResources(flags);
    DeclareQueue(flags);
    DeclareRun(flags);
    own_flags_.assign(flags.flags().begin(), flags.flags().end());
    train_flags_ = FlagsOfTrain(kNotPassedOn);
    for (Flag& flag : train_flags_) flag.hidden = true;
    flags.Add(train_flags_);
    flags.BeginGroup("run");
    DeclareRunFolder(flags, &job_.run);
  }

  int Run() override {
    const Flags& flags = flags_->values();
    RequireFlagsOfSystem(flags.Text("system"), GivenFlags(own_flags_, flags));
    const WarningsOnly warnings_only;  // the nets are only planned
    job_.time = ParseJobTime(time_);
    job_.train_flags = GivenFlags(train_flags_, flags);
    job_.command = CommandWords("job", own_flags_, {"module", "line", "set"}, flags);
    job_.command.insert(job_.command.end(), job_.train_flags.begin(), job_.train_flags.end());
    if (!job_.run.empty()) job_.command.push_back("--run=" + job_.run);
    const SolverSpec spec =
        ReadSolver({job_.solver, job_.assignments, {flags.Whole("level"), flags.List("stage")}});
    SetGpus(gpu_, &job_);
    // --scale_lr needs a batch that grows with the ranks.
    job_.global_batch = job_.global_batch && !flags.Switch("scale_lr");
    DescribeRun(spec, &job_);
    std::cout << JobScript(job_);
    return 0;
  }

 private:
  // The script sets these flags itself, or `job` has its own flags of these names.
  static constexpr std::string_view kNotPassedOn[] = {
      "solver",   "set",   "gpu",   "global_batch", "snapshot",       "resume",
      "max_wall", "phase", "ranks", "requeue",      "stop_exit_code", "run"};

  void DeclareResources(FlagSet& flags) {
    flags.BeginGroup("resources");
    flags.Bind(&job_.nodes, "nodes", "N", "machines").Range(1, 100000);
    flags.Bind(&job_.ranks_per_node, "ranks_per_node", "N", "ranks on each node").Range(1, 100000);
    job_.cores = 0;
    DeclareCores(flags, &job_.cores);
    flags.Bind(&time_, "time", "TIME",
               "time limit of each job: 4:00:00, 1-12:00:00, 90 (minutes), 90m");
  }
  void DeclareQueue(FlagSet& flags) {
    flags.BeginGroup("queue");
    flags.Bind(&job_.partition, "partition", "NAME", "the partition or queue to run in");
    flags.Bind(&job_.account, "account", "NAME", "the account or project to charge");
    flags.Bind(&job_.qos, "qos", "NAME", "the quality of service (Slurm, Moab)");
    flags.Bind(&job_.constraint, "constraint", "FEATURE", "use only nodes that have this feature");
    flags.Bind(&job_.mail, "mail", "ADDRESS", "address for a mail when the job ends");
    flags.Bind(&job_.output, "output", "FILE", "file to which the queue writes the log");
    flags.Bind(&job_.modules, "module", "NAME",
               "load this environment module; may be given several times");
    flags.Bind(&job_.lines, "line", "TEXT",
               "add this line to the script: --line='#SBATCH --exclusive'; may be given several "
               "times");
  }
  void DeclareRun(FlagSet& flags) {
    flags.BeginGroup("run");
    flags.Bind(&job_.mpirun, "mpirun", "", "start the ranks with mpirun, for a Slurm without PMIx");
    flags
        .Bind(&job_.seeds, "seeds", "N",
              "print a job array of N runs with the seeds 1 to N (Slurm)")
        .Range(0, 100000);
    DeclareArrayLimit(flags, &job_.array_limit);
    flags.Bind(&job_.preemptable, "preemptable", "",
               "jobs of higher priority may stop this job at any time, so save a snapshot every "
               "15 minutes");
    flags
        .Bind(&gpu_, "gpu", "IDS",
              "train with one GPU per rank; --gpu=0,1 means --ranks_per_node=2 --gpu")
        .IfBare("0");
    flags.Bind(&job_.global_batch, "global_batch", "",
               "batch_size is the batch of all ranks together; --noglobal_batch: of each rank");
    flags.Bind(&job_.container, "container", "IMAGE", "Apptainer image with the program");
  }

  JobSpec job_;
  std::string time_ = "4:00:00", gpu_;
  std::vector<Flag> own_flags_, train_flags_;
  const FlagSet* flags_ = nullptr;
};

const RegisterVerb<JobVerb> kJob("job");

}  // namespace
}  // namespace trainer
