#include <iostream>

#include "job_request.h"
#include "shared_flags.h"
#include "trainer/base/error.h"
#include "trainer/base/text.h"
#include "verb.h"

namespace trainer {
namespace {

Flag JobNumber(std::string_view name, std::string_view fallback, std::string_view help, int min) {
  return {.name = name,
          .kind = FlagKind::kWhole,
          .value = "N",
          .fallback = fallback,
          .help = help,
          .min = min,
          .max = 100000};
}

class JobVerb final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {
        .task = VerbTask::kCluster,
        .summary = "print a batch script that trains until the run is finished",
        .usage = "trainer job --solver=FILE [--system=slurm|pbs|mpirun] [flags]",
        .text =
            "Asks for the memory that `trainer plan` counts, for as many cores as the net can "
            "keep busy, and for a signal early enough for the last snapshot. The databases that "
            "the net names must be there. The script runs the same command in each slot of time: "
            "with --resume=auto it goes on where the one before stopped, and ends with 0 when all "
            "is done; 75 and 82 have the job queued again.\n"
            "docs/clusters.md explains the scripts.",
        .examples =
            "trainer job --solver=s.prototxt --time=4:00:00 > job.sh && sbatch job.sh\n"
            "trainer job --solver=s.prototxt --nodes=2 --mpirun\n"
            "trainer job --solver=s.prototxt --seeds=4\n"
            "trainer job --solver=s.prototxt --system=pbs > job.pbs && qsub job.pbs\n"
            "trainer job --solver=s.prototxt --system=mpirun --nodes=4 > run.sh",
        .flags = {{.name = "solver", .value = "FILE", .help = "the solver", .required = true},
                  {.name = "system",
                   .value = "SYSTEM",
                   .fallback = "slurm",
                   .help = "slurm, pbs, or mpirun with a file of hosts",
                   .choices = "slurm|pbs|mpirun"},
                  JobNumber("nodes", "1", "machines", 1),
                  JobNumber("ranks_per_node", "1", "ranks on each node", 1),
                  JobNumber("cores", "0", "cores of a rank; 0: as many as the net keeps busy", 0),
                  {.name = "time",
                   .value = "TIME",
                   .fallback = "4:00:00",
                   .help = "time limit of each slot: 4:00:00, 1-12:00:00, 90 (minutes), 90m"},
                  {.name = "partition",
                   .value = "NAME",
                   .help = "the partition of Slurm to run in"},
                  {.name = "mpirun",
                   .kind = FlagKind::kSwitch,
                   .help = "start Slurm's ranks with mpirun, where srun has no PMIx"},
                  JobNumber("seeds", "0", "an array of N runs with the seeds 1 to N (Slurm)", 0),
                  {.name = "preemptable",
                   .kind = FlagKind::kSwitch,
                   .help = "more urgent jobs may end it at any time: snapshots by the clock"},
                  {.name = "gpu",
                   .kind = FlagKind::kSwitch,
                   .help = "train on a GPU, each rank on one of its own"},
                  {.name = "container",
                   .value = "IMAGE",
                   .help = "run in this image of Apptainer, which holds the program"},
                  LevelFlag(),
                  StageFlag(),
                  SetFlag()},
    };
  }

  int Run(const Flags& flags) override {
    JobRequest job = ReadRequest(flags);
    Refuse(job);
    const SolverSpec spec = SolverOf(flags);
    job.snapshot_prefix = ShellWord(spec.proto.snapshot_prefix());
    FitToNet(spec, &job);
    std::cout << JobScript(job);
    return 0;
  }

 private:
  static JobRequest ReadRequest(const Flags& flags) {
    JobRequest job;
    const std::string& system = flags.Text("system");
    if (system == "pbs") job.system = JobSystem::kPbs;
    if (system == "mpirun") job.system = JobSystem::kMpirun;
    job.solver = ShellWord(flags.Text("solver"));
    job.name = JobName(flags.Text("solver"));
    job.nodes = flags.Whole("nodes");
    job.ranks_per_node = flags.Whole("ranks_per_node");
    job.cores = flags.Whole("cores");
    job.time = SlotTime(flags.Text("time"));
    if (flags.Has("partition")) job.partition = ShellWord(flags.Text("partition"));
    job.mpirun = flags.Switch("mpirun");
    job.seeds = flags.Whole("seeds");
    job.preemptable = flags.Switch("preemptable");
    job.gpu = flags.Switch("gpu");
    if (flags.Has("container")) job.container = ShellWord(flags.Text("container"));
    for (const std::string& change : flags.Each("set")) {
      job.changes.push_back("--set " + ShellWord(change));
    }
    for (const char* name : {"level", "stage"}) {
      const std::string& given = flags.Text(name);
      if (!given.empty() && given != "0") {
        job.changes.push_back(Join("--", name, "=", ShellWord(given)));
      }
    }
    job.command = CommandOf(flags, job);
    return job;
  }

  static void Refuse(const JobRequest& job) {
    const auto refuse = [](const char* flag, const char* why) {
      throw Error(ErrorCode::kUsage, Join(flag, ": ", why));
    };
    const bool slurm = job.system == JobSystem::kSlurm;
    if (!slurm && job.seeds > 0)
      refuse("--seeds", "arrays are made for Slurm; take --system=slurm");
    if (!slurm && job.mpirun) refuse("--mpirun", "it is for Slurm; the other systems have no srun");
    if (!slurm && !job.partition.empty()) refuse("--partition", "it is for Slurm");
    if (job.gpu && job.ranks() > 1 && (!slurm || job.mpirun)) {
      refuse("--gpu", "only srun gives each of several ranks a GPU of its own");
    }
  }

  // The command line with the flags that differ from their defaults.
  static std::string CommandOf(const Flags& flags, const JobRequest& job) {
    std::string text = Join("trainer job --solver=", job.solver);
    const std::pair<const char*, const char*> usual[] = {
        {"system", "slurm"}, {"nodes", "1"},    {"ranks_per_node", "1"}, {"cores", "0"},
        {"time", "4:00:00"}, {"partition", ""}, {"seeds", "0"},          {"container", ""}};
    for (const auto& [name, value] : usual) {
      const std::string& given = flags.Text(name);
      if (given != value) text += Join(" --", name, "=", ShellWord(given));
    }
    for (const char* name : {"mpirun", "preemptable", "gpu"}) {
      if (flags.Switch(name)) text += Join(" --", name);
    }
    for (const std::string& change : job.changes) text += " " + change;
    return text;
  }
};

const RegisterVerb<JobVerb> kJob("job");

}  // namespace
}  // namespace trainer
