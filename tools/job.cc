#include <algorithm>
#include <iostream>

#include "job_flags.h"
#include "run_flags.h"
#include "shared_flags.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/log/log.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/flag_set.h"
#include "trainer/cli/verb.h"
#include "trainer/run/jobs/job_resources.h"
#include "trainer/solver/solver.h"

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

Flag JobSwitch(std::string_view name, std::string_view help, std::string_view fallback = "") {
  return {.name = name, .kind = FlagKind::kSwitch, .fallback = fallback, .help = help};
}

std::vector<Flag> JobFlags() {
  std::vector<Flag> flags = {
      {.name = "solver", .value = "FILE", .help = "the solver", .required = true},
      {.name = "system",
       .value = "SYSTEM",
       .fallback = "slurm",
       .help = "which script to print: slurm, pbs, moab, lsf, sqsub, or mpirun with a hosts file",
       .choices = "slurm|pbs|moab|lsf|sqsub|mpirun"},
      SetFlag()};
  AddFlags("resources",
           {JobNumber("nodes", "1", "machines", 1),
            JobNumber("ranks_per_node", "1", "ranks on each node", 1),
            CoresFlag(),
            {.name = "time",
             .value = "TIME",
             .fallback = "4:00:00",
             .help = "time limit of each job: 4:00:00, 1-12:00:00, 90 (minutes), 90m"}},
           &flags);
  AddFlags(
      "queue",
      {{.name = "partition", .value = "NAME", .help = "the partition or queue to run in"},
       {.name = "account", .value = "NAME", .help = "the account or project to charge"},
       {.name = "qos", .value = "NAME", .help = "the quality of service (Slurm, Moab)"},
       {.name = "constraint", .value = "FEATURE", .help = "use only nodes that have this feature"},
       {.name = "mail", .value = "ADDRESS", .help = "address for a mail when the job ends"},
       {.name = "output", .value = "FILE", .help = "file to which the queue writes the log"},
       {.name = "module",
        .kind = FlagKind::kEach,
        .value = "NAME",
        .help = "load this environment module; may be given several times"},
       {.name = "line",
        .kind = FlagKind::kEach,
        .value = "TEXT",
        .help = "add this line to the script: --line='#SBATCH --exclusive'; may be given several "
                "times"}},
      &flags);
  AddFlags(
      "run",
      {JobSwitch("mpirun", "start the ranks with mpirun, for a Slurm without PMIx"),
       JobNumber("seeds", "0", "print a job array of N runs with the seeds 1 to N (Slurm)", 0),
       ArrayLimitFlag(),
       JobSwitch("preemptable",
                 "jobs of higher priority may stop this job at any time, so save a snapshot every "
                 "15 minutes"),
       {.name = "gpu",
        .value = "IDS",
        .help = "train with one GPU per rank; --gpu=0,1 means --ranks_per_node=2 --gpu",
        .bare = "0"},
       JobSwitch("global_batch",
                 "batch_size is the batch of all ranks together; --noglobal_batch: of each rank",
                 "true"),
       {.name = "container", .value = "IMAGE", .help = "Apptainer image with the program"}},
      &flags);
  return flags;
}

// The flags of `train` that the script hands to the run. The help of `train` lists them.
std::vector<Flag> HandedFlags() {
  static constexpr std::string_view kOwn[] = {
      "solver",   "set",   "gpu",   "global_batch", "snapshot",       "resume",
      "max_wall", "phase", "ranks", "requeue",      "stop_exit_code", "run"};
  std::vector<Flag> flags = FlagsOfTrain(kOwn);
  for (Flag& flag : flags) flag.hidden = true;
  AddFlags("run", {RunFolderFlag()}, &flags);
  return flags;
}

constexpr std::pair<const char*, JobSystem> kSystems[] = {
    {"slurm", JobSystem::kSlurm}, {"pbs", JobSystem::kPbs},     {"moab", JobSystem::kMoab},
    {"lsf", JobSystem::kLsf},     {"sqsub", JobSystem::kSqsub}, {"mpirun", JobSystem::kMpirun}};

// The flags that only some of the systems have.
constexpr std::pair<const char*, std::string_view> kOnlyOf[] = {
    {"mpirun", "slurm"},
    {"seeds", "slurm"},
    {"array_limit", "slurm"},
    {"qos", "slurm, moab"},
    {"account", "slurm, pbs, moab, lsf"},
    {"constraint", "slurm, pbs, moab, lsf"},
    {"mail", "slurm, pbs, moab, lsf"},
    {"partition", "slurm, pbs, moab, lsf, sqsub"},
    {"output", "slurm, pbs, moab, lsf, sqsub"}};

void RefuseFlagsOfOthers(const Flags& flags) {
  const std::string& system = flags.Text("system");
  const std::vector<std::string> given = GivenFlags(JobFlags(), flags);
  for (const auto& [name, systems] : kOnlyOf) {
    const std::string flag = Join("--", name);
    const bool is_given = std::ranges::any_of(given, [&](const std::string& word) {
      return word == flag || word.starts_with(flag + "=");
    });
    const std::vector<std::string> all = SplitList(systems);
    if (!is_given || std::ranges::find(all, system) != all.end()) continue;
    throw Error(ErrorCode::kUsage,
                Join(flag, ": this flag works with --system=", systems, ", not with ", system,
                     "; leave it out, or pass the line that your queue needs with --line"));
  }
}

class JobVerb final : public Verb {
 public:
  VerbDoc Doc() const override {
    std::vector<Flag> flags = JobFlags();
    for (const Flag& flag : HandedFlags()) flags.push_back(flag);
    return {
        .task = VerbTask::kCluster,
        .summary = "print a batch script that trains until the run is finished",
        .usage = "trainer job --solver=FILE [--system=SYSTEM] [flags] [flags of train]",
        .text =
            "The script requests the memory that 'trainer plan' computes, as many cores as the net "
            "can keep busy, and a signal early enough to save the last snapshot. To measure the "
            "time of a snapshot, 'trainer job' writes a file to the snapshot folder and removes "
            "it. The net's databases and the folder of snapshot_prefix must exist.\n"
            "Each job of the script runs the same command. With --resume=auto, the command resumes "
            "the run where the job before stopped, and exits with code 0 when the run is finished. "
            "After exit codes 75 and 82, the script queues the job again. Flags of 'trainer "
            "train', such as --strategy or --run, are passed to the run.\n"
            "docs/clusters.md explains the scripts.",
        .examples =
            "trainer job --solver=s.prototxt --time=4:00:00 > job.sh && sbatch job.sh\n"
            "trainer job --solver=s.prototxt --nodes=2 --ranks_per_node=4 --gpu\n"
            "trainer job --solver=s.prototxt --nodes=2 --mpirun --strategy=easgd\n"
            "trainer job --solver=s.prototxt --seeds=40 --array_limit=4\n"
            "trainer job --solver=s.prototxt --account=lab --module=openmpi --run=runs/a\n"
            "trainer job --solver=s.prototxt --system=pbs > job.pbs && qsub job.pbs\n"
            "trainer job --solver=s.prototxt --system=moab --gpu > job.msub\n"
            "trainer job --solver=s.prototxt --system=lsf > job.lsf && bsub < job.lsf\n"
            "trainer job --solver=s.prototxt --system=mpirun --nodes=4 > run.sh",
        .flags = flags,
    };
  }

  int Run(const Flags& flags) override {
    RefuseFlagsOfOthers(flags);
    const WarningsOnly quiet;  // The nets are only planned.
    JobSpec job = ReadRequest(flags);
    const SolverSpec spec = SolverOf(flags);
    SetGpus(flags.Text("gpu"), &job);
    job.gpu = job.gpu || (spec.proto.has_solver_mode() &&
                          spec.proto.solver_mode() == caffe::SolverParameter::GPU);
    job.snapshot_prefix = spec.proto.snapshot_prefix();
    if (SavesSnapshots(spec.proto)) CheckWritable(spec.proto.snapshot_prefix(), 0);
    if (job.system == JobSystem::kSlurm) {
      job.node_cores = CoresOfLargestNode(job.partition);
    }
    EstimateJobResources(spec, &job);
    std::cout << JobScript(job);
    return 0;
  }

 private:
  static JobSpec ReadRequest(const Flags& flags) {
    JobSpec job;
    for (const auto& [name, system] : kSystems) {
      if (flags.Text("system") == name) job.system = system;
    }
    job.solver = flags.Text("solver");
    job.name = JobName(job.solver);
    job.nodes = flags.Whole("nodes");
    job.ranks_per_node = flags.Whole("ranks_per_node");
    job.cores = flags.Whole("cores");
    job.time = ParseJobTime(flags.Text("time"));
    job.mpirun = flags.Switch("mpirun");
    job.seeds = flags.Whole("seeds");
    job.array_limit = flags.Whole("array_limit");
    job.preemptable = flags.Switch("preemptable");
    // With the batch of one rank, one rank's rate is right: --scale_lr wants the larger batch.
    job.global_batch = flags.Switch("global_batch") && !flags.Switch("scale_lr");
    const std::pair<const char*, std::string*> texts[] = {
        {"partition", &job.partition},   {"account", &job.account}, {"qos", &job.qos},
        {"constraint", &job.constraint}, {"mail", &job.mail},       {"output", &job.output},
        {"container", &job.container},   {"run", &job.run}};
    for (const auto& [name, text] : texts) *text = flags.Text(name);
    job.modules = flags.Each("module");
    job.lines = flags.Each("line");
    job.assignments = flags.Each("set");
    for (std::string& word : GivenFlags(HandedFlags(), flags)) {
      if (!word.starts_with("--run=")) job.train_flags.push_back(std::move(word));
    }
    job.command = CommandOf(flags, job);
    return job;
  }

  // The command line with the flags that differ from their defaults.
  static std::vector<std::string> CommandOf(const Flags& flags, const JobSpec& job) {
    std::vector<std::string> words = {"trainer", "job", "--solver=" + job.solver};
    const auto add = [&](const std::vector<Flag>& table) {
      for (const std::string& word : GivenFlags(table, flags)) {
        if (!word.starts_with("--solver=")) words.push_back(word == "--gpu=0" ? "--gpu" : word);
      }
    };
    add(JobFlags());
    for (const char* name : {"module", "line", "set"}) {
      for (const std::string& value : flags.Each(name)) {
        words.insert(words.end(), {Join("--", name), value});
      }
    }
    add(HandedFlags());
    return words;
  }
};

const RegisterVerb<JobVerb> kJob("job");

}  // namespace
}  // namespace trainer
