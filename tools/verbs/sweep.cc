#include <algorithm>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "flag_groups.h"
#include "job_flags.h"
#include "run_flags.h"
#include "trainer/base/log/log.h"
#include "trainer/cli/verb.h"
#include "trainer/run/jobs/job_resources.h"
#include "trainer/run/jobs/time_limit.h"
#include "trainer/run/search/grid_search.h"
#include "trainer/run/search/random_search.h"
#include "trainer/run/search/trial_report.h"

namespace trainer {
namespace {

// Trains once for each combination of the values in --set, or for values that it draws, here one
// after the other or as a Slurm job array, and prints a table of the results.
class Sweep final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    flags_ = &flags;
    flags.Bind(&grid_.solver, "solver", "FILE", "the solver").Required();
    flags.Bind(&grid_.assignments, "set", "KEY=VALUES",
               "as for 'trainer train', but with several values, separated by commas: "
               "base_lr=0.1,0.01; write lists in brackets: stepvalue=[100,200],[300]. "
               "batch=32,64 sets --batch. With --trials: log:LOW..HIGH, uniform:LOW..HIGH, "
               "int:LOW..HIGH or choice:A,B");
    flags.Bind(&grid_.folder, "out", "DIR",
               "folder for the folders of the runs (default: <snapshot_prefix>_sweep, or _search "
               "with --trials)");
    flags
        .Bind(&grid_.seeds, "seeds", "N",
              "train each trial N times, with random_seed 1 to N, and rank by the mean; 0: once, "
              "with the solver's random_seed")
        .Range(0, 1000);
    flags.BeginGroup("random search");
    flags
        .Bind(&grid_.trials, "trials", "N", "train N trials with values drawn at random; 0: a grid")
        .Range(0, 9999);
    DeclareSeed(flags, &grid_.seed, "of the drawn values: trial i has the same ones again");
    flags.BindChoice(&grid_.stops_early, "stop", "RULE", {{"none", false}, {"asha", true}},
                     "asha: train all trials for a ninth of their iterations, the best third of "
                     "them for a third, and the best third of those to the end");
    flags.BeginGroup("");
    flags.Bind(&table_only_, "table", "", "only print the table of the existing runs");
    flags.BindChoice(
        &prints_script_, "system", "SYSTEM", {{"here", false}, {"slurm", true}},
        "here: run on this machine; slurm: print a batch script with one task per run");
    flags.Bind(&time_, "time", "TIME", "time limit of each Slurm task, as for 'trainer job'");
    flags.Bind(&job_.partition, "partition", "NAME", "the Slurm partition to run in");
    job_.cores = 0;
    DeclareCores(flags, &job_.cores);
    DeclareArrayLimit(flags, &job_.array_limit);
    DeclareMaxWall(flags, &search_.max_wall);
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
    RequireWallTime(search_.max_wall);
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
    const int code = table_only_ ? 0 : RunSweep(grid, grid_, search_);
    std::cout << ToText(ReadSweep(grid, grid_));
    return code;
  }

 private:
  // The sweep sets these flags itself, or has its own flags of these names.
  static constexpr std::string_view kNotPassedOn[] = {
      "solver", "set",       "snapshot",       "allow_outside", "resume", "max_wall",
      "phase",  "lock_wait", "stop_exit_code", "run",           "until"};

  // Fills job_ for a job array whose tasks start their ranks themselves.
  void DescribeJob(const Flags& flags, const Grid& grid) {
    job_.time = ParseJobTime(time_);
    SetTaskGpu(flags.Text("gpu"), &job_);
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
  std::string time_ = "4:00:00";
  bool table_only_ = false, prints_script_ = false;
  std::vector<Flag> own_flags_, train_flags_;
  const FlagSet* flags_ = nullptr;
};

const RegisterVerb<Sweep> kSweep("sweep");

}  // namespace
}  // namespace trainer
