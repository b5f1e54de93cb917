#include <algorithm>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "flag_groups.h"
#include "job_flags.h"
#include "run_flags.h"
#include "trainer/base/error/error.h"
#include "trainer/base/log/log.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/verb.h"
#include "trainer/monitor/test_score.h"
#include "trainer/parallel/environment.h"
#include "trainer/run/device.h"
#include "trainer/run/jobs/job_resources.h"
#include "trainer/run/jobs/time_limit.h"
#include "trainer/run/search/grid_search.h"
#include "trainer/run/search/trial_result.h"

namespace trainer {
namespace {

// Trains once for each combination of the values in --set, here one after the other or as a Slurm
// job array, and prints a table of the results.
class Sweep final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    flags_ = &flags;
    flags.Bind(&grid_.solver, "solver", "FILE", "the solver").Required();
    flags.Bind(&grid_.assignments, "set", "KEY=VALUES",
               "as for 'trainer train', but with several values, separated by commas: "
               "base_lr=0.1,0.01; write lists in brackets: stepvalue=[100,200],[300]");
    flags.Bind(&grid_.folder, "out", "DIR",
               "folder for the folders of the runs (default: <snapshot_prefix>_sweep)");
    flags.Bind(&table_only_, "table", "", "only print the table of the existing runs");
    flags.BindChoice(
        &prints_script_, "system", "SYSTEM", {{"here", false}, {"slurm", true}},
        "here: run on this machine; slurm: print a batch script with one task per run");
    flags.Bind(&time_, "time", "TIME", "time limit of each Slurm task, as for 'trainer job'");
    flags.Bind(&job_.partition, "partition", "NAME", "the Slurm partition to run in");
    job_.cores = 0;
    DeclareCores(flags, &job_.cores);
    DeclareArrayLimit(flags, &job_.array_limit);
    DeclareMaxWall(flags, &max_wall_);
    flags
        .Bind(&search_.stop_exit_code, "stop_exit_code", "N",
              "exit code when a signal or the time limit stopped the sweep")
        .Range(0, 255);
    own_flags_.assign(flags.flags().begin(), flags.flags().end());
    train_flags_ = FlagsOfTrain(kNotPassedOn);
    flags.Add(train_flags_);
  }

  int Run() override {
    const Flags& flags = flags_->values();
    if (ReadLaunchEnvironment().count > 1) {
      throw Error(ErrorCode::kUsage,
                  "a sweep starts its runs itself: start it without mpirun; for runs with several "
                  "ranks give --ranks, or --system=slurm");
    }
    RequireWallTime(max_wall_);
    if (grid_.folder.ends_with('/')) {
      throw Error(ErrorCode::kUsage, Join("--out=", grid_.folder, ": leave out the last '/'"));
    }
    std::optional<WarningsOnly> warnings_only;  // the log would hide a script
    if (prints_script_) warnings_only.emplace();
    grid_.state = {flags.Whole("level"), flags.List("stage")};
    search_.train_flags = GivenFlags(train_flags_, flags);
    const Grid grid = LoadGrid(grid_);
    if (prints_script_) {
      DescribeJob(flags, grid);
      std::cout << JobScript(job_);
      return 0;
    }
    if (!max_wall_.empty() && max_wall_ != "none") {
      search_.deadline = RunDeadline(max_wall_, search_.stop_exit_code);
    }
    const int code = table_only_ ? 0 : RunTrials(grid, grid_, search_);
    std::cout << ToText(ReadTrials(grid.trials, ScoredOutput(grid.spec.proto)));
    return code;
  }

 private:
  // The sweep sets these flags itself, or they are its own.
  static constexpr std::string_view kNotPassedOn[] = {
      "solver",   "set",   "snapshot",  "allow_outside",  "resume",
      "max_wall", "phase", "lock_wait", "stop_exit_code", "run"};

  // Fills job_ for a job array with one task per trial, which starts its ranks itself.
  void DescribeJob(const Flags& flags, const Grid& grid) {
    job_.time = ParseJobTime(time_);
    const DeviceOptions device = {.gpu = flags.Text("gpu")};
    job_.gpu = !device.gpu.empty();
    if (job_.gpu && RequestedGpu(device).value_or(0) != 0) {
      throw Error(ErrorCode::kUsage,
                  "--gpu: in a Slurm task, its GPU has the number 0; give --gpu=0");
    }
    job_.command = CommandWords("sweep", own_flags_, {}, flags);
    std::vector<std::string> sets;
    for (const std::string& set : grid_.assignments) sets.insert(sets.end(), {"--set", set});
    job_.command.insert(job_.command.begin() + 3, sets.begin(), sets.end());
    for (const std::string& word : search_.train_flags) {
      job_.command.push_back(word);
      if (!word.starts_with("--gpu=") && word != "--requeue") job_.train_flags.push_back(word);
    }
    DescribeGrid(grid, grid_, std::max(1, flags.Whole("ranks")), &job_);
  }

  GridOptions grid_;
  GridSearchOptions search_;
  JobSpec job_;
  std::string time_ = "4:00:00", max_wall_;
  bool table_only_ = false, prints_script_ = false;
  std::vector<Flag> own_flags_, train_flags_;
  const FlagSet* flags_ = nullptr;
};

const RegisterVerb<Sweep> kSweep("sweep");

}  // namespace
}  // namespace trainer
