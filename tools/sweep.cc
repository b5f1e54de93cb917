#include <algorithm>
#include <iostream>
#include <optional>

#include "device_flags.h"
#include "job_flags.h"
#include "run_flags.h"
#include "shared_flags.h"
#include "trainer/base/error/error.h"
#include "trainer/base/log/log.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/flag_set.h"
#include "trainer/cli/verb.h"
#include "trainer/parallel/environment.h"
#include "trainer/run/jobs/job_resources.h"
#include "trainer/run/jobs/shell_quote.h"
#include "trainer/run/jobs/time_limit.h"
#include "trainer/run/search/grid_search.h"
#include "trainer/run/search/trial_result.h"

namespace trainer {
namespace {

// The flags of `train` that each run gets as they are.
std::vector<Flag> FlagsOfRuns() {
  static constexpr std::string_view kOwn[] = {
      "solver",   "set",   "snapshot",  "allow_outside",  "resume",
      "max_wall", "phase", "lock_wait", "stop_exit_code", "run"};
  return FlagsOfTrain(kOwn);
}

std::vector<Flag> OwnFlags() {
  return {{.name = "solver", .value = "FILE", .help = "the solver", .required = true},
          {.name = "set",
           .kind = FlagKind::kEach,
           .value = "KEY=VALUES",
           .help = "as for 'trainer train', but with several values, separated by commas: "
                   "base_lr=0.1,0.01; write lists in brackets: stepvalue=[100,200],[300]"},
          {.name = "out",
           .value = "DIR",
           .help = "folder for the folders of the runs (default: <snapshot_prefix>_sweep)"},
          {.name = "table",
           .kind = FlagKind::kSwitch,
           .help = "only print the table of the existing runs"},
          {.name = "system",
           .value = "SYSTEM",
           .fallback = "here",
           .help = "here: run on this machine; slurm: print a batch script with one task per run",
           .choices = "here|slurm"},
          {.name = "time",
           .value = "TIME",
           .fallback = "4:00:00",
           .help = "time limit of each Slurm task, as for 'trainer job'"},
          {.name = "partition", .value = "NAME", .help = "the Slurm partition to run in"},
          CoresFlag(),
          ArrayLimitFlag(),
          MaxWallFlag(),
          {.name = "stop_exit_code",
           .kind = FlagKind::kWhole,
           .value = "N",
           .fallback = "75",
           .help = "exit code when a signal or the time limit stopped the sweep",
           .max = 255}};
}

class Sweep final : public Verb {
 public:
  VerbDoc Doc() const override {
    std::vector<Flag> flags = OwnFlags();
    for (const Flag& flag : FlagsOfRuns()) flags.push_back(flag);
    return {
        .task = VerbTask::kTrain,
        .summary = "train with several settings in turn, and compare",
        .usage = "trainer sweep --solver=FILE --set KEY=VALUE,VALUE [--set ...] [flags]",
        .text =
            "Trains one run after the other, for each combination of the values. Each run has its "
            "own folder with its snapshots, the file `log` and the files of 'trainer train --run'. "
            "'trainer report' and TensorBoard compare these folders. At the end, a table lists the "
            "runs, the best test first. The table uses best_output, else accuracy, else the first "
            "output of the first test net.\n"
            "If a run fails, the table says so and the other runs continue. To resume a stopped "
            "sweep, give the same command again: runs that finished or diverged are not repeated, "
            "and the others resume from their snapshots. You may add values.\n"
            "With --system=slurm, nothing runs now. The printed script runs all combinations as "
            "tasks of a job array, and --table prints the table afterwards.",
        .examples =
            "trainer sweep --solver=s.prototxt --set base_lr=0.1,0.01,0.001\n"
            "trainer sweep --solver=s.prototxt --set base_lr=0.1,0.01 --set momentum=0,0.9\n"
            "trainer sweep --solver=s.prototxt --set base_lr=0.1,0.01 --set max_iter=500\n"
            "trainer sweep --solver=s.prototxt --set random_seed=1,2,3 --gpu=0 --out=seeds\n"
            "trainer sweep --solver=s.prototxt --set base_lr=0.1,0.01 --system=slurm > j.sh\n"
            "trainer sweep --solver=s.prototxt --set base_lr=0.1,0.01 --table",
        .flags = flags,
    };
  }

  int Run(const Flags& flags) override {
    if (ReadRankEnvironment().count > 1) {
      throw Error(ErrorCode::kUsage,
                  "a sweep starts its runs itself: start it without mpirun; for runs with several "
                  "ranks give --ranks, or --system=slurm");
    }
    RequireWallTime(flags.Text("max_wall"));
    if (flags.Has("out") && flags.Text("out").ends_with('/')) {
      throw Error(ErrorCode::kUsage, Join("--out=", flags.Text("out"), ": leave out the last '/'"));
    }
    // The nets are only planned for a script: its standard error stays free of their log.
    const bool prints = flags.Text("system") == "slurm";
    std::optional<WarningsOnly> quiet;
    if (prints) quiet.emplace();
    const GridOptions options{flags.Text("solver"), StateFlagsOf(flags), flags.Each("set"),
                              flags.Text("out")};
    const Grid grid = LoadGrid(options);
    if (prints) {
      std::cout << JobScript(ArrayOf(flags, grid));
      return 0;
    }
    int code = 0;
    if (!flags.Switch("table")) {
      GridSearchOptions search{GivenFlags(FlagsOfRuns(), flags), {}, flags.Whole("stop_exit_code")};
      const bool limited = flags.Has("max_wall") && flags.Text("max_wall") != "none";
      if (limited) search.deadline = RunDeadline(flags.Text("max_wall"));
      code = RunTrials(grid, options, search);
    }
    std::cout << ToText(ReadTrials(grid.trials, grid.spec.proto.best_output()));
    return code;
  }

 private:
  // As `trainer job` asks for one run. Ranks of a run are started by its own --ranks.
  static JobSpec ArrayOf(const Flags& flags, const Grid& grid) {
    JobSpec job;
    job.solver = flags.Text("solver");
    job.name = JobName(job.solver);
    job.time = ParseJobTime(flags.Text("time"));
    job.partition = flags.Text("partition");
    job.gpu = flags.Has("gpu");
    if (job.gpu && GpuOf(flags).value_or(0) != 0) {
      throw Error(ErrorCode::kUsage,
                  "--gpu: in a Slurm task, its GPU has the number 0; give --gpu=0");
    }
    job.cores = flags.Whole("cores");
    job.node_cores = CoresOfLargestNode(job.partition);
    job.array_limit = flags.Whole("array_limit");
    EstimateJobResources(grid.spec, &job, std::max(1, flags.Whole("ranks")));
    job.command = {"trainer", "sweep", "--solver=" + job.solver};
    for (const std::string& set : flags.Each("set")) {
      job.command.insert(job.command.end(), {"--set", set});
    }
    for (std::string& word : GivenFlags(OwnFlags(), flags)) {
      if (!word.starts_with("--solver=")) job.command.push_back(std::move(word));
    }
    for (const std::string& word : GivenFlags(FlagsOfRuns(), flags)) {
      job.command.push_back(word);
      if (!word.starts_with("--gpu=") && word != "--requeue") job.train_flags.push_back(word);
    }
    AddTrials(grid, &job);
    return job;
  }
};

const RegisterVerb<Sweep> kSweep("sweep");

}  // namespace
}  // namespace trainer
