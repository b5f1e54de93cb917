#pragma once
// Sweeps: the trials of a grid or of a random search, and how each of them is trained in a child
// process.

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/process/child_process.h"
#include "trainer/config/solver_spec.h"
#include "trainer/run/jobs/job_script.h"
#include "trainer/run/search/grid.h"

namespace trainer {

// The solver, the values to combine or to draw, and where the trials are stored.
struct GridOptions {
  std::string solver;                    // file
  StateFlags state;                      // --level and --stage
  std::vector<std::string> assignments;  // values of --set: "base_lr=0.1,0.01"
  std::string folder;  // of the trials' folders; "": <snapshot_prefix>_sweep, or _search
  int seeds = 0;       // runs of each trial, with the seeds 1, 2, ...; 0: one, with the solver's
  int trials = 0;      // > 0: a random search of so many trials; 0: a grid
  int seed = 1;        // of the random search
  bool stops_early = false;  // the random search stops the worse trials early (--stop=asha)
};

// The trials of a sweep, and the solver that they vary.
struct Grid {
  SolverSpec spec;            // with the settings of the first trial, and the largest batch of all
  std::vector<Trial> trials;  // their runs
  std::string folder;         // GridOptions::folder or its default
};

// Returns the trials of a grid or of a random search. Reads the solver of each trial, so that an
// error in any of them is thrown before the first one starts. Throws kUsage for options that
// contradict each other.
Grid LoadGrid(const GridOptions& options);

// How to train the trials.
struct GridSearchOptions {
  std::vector<std::string> train_flags;  // more flags of `trainer train`, for every trial
  std::string max_wall;                  // a time, "none" or ""; RunSweep sets the deadline by it
  std::optional<std::chrono::steady_clock::time_point> deadline;
  int stop_exit_code = 75;  // returned if a signal or the deadline stops the search
  // Runs `trainer` with these arguments and a log file; null: in a child process.
  std::function<ExitStatus(const std::vector<std::string>& arguments, const std::string& log)>
      start;
};

// Trains the trials that are not over yet; each resumes from its newest snapshot. Returns the exit
// code of the first trial that failed, kDiverged if all of them diverged, `search.stop_exit_code`
// if a signal or the deadline stops the search, or 0. Throws kCannotCreate if the folder of a trial
// holds another run, because its result would be taken for the trial's.
int RunTrials(const Grid& grid, const GridOptions& options, const GridSearchOptions& search);

// Sets `job->gpu` for tasks of one GPU each; `id` is the value of --gpu. Throws kUsage for a number
// other than 0.
void SetTaskGpu(const std::string& id, JobSpec* job);

// Completes `job`, which has what the user asks for, as a Slurm job array: with one task per run of
// a grid, or with `job->array_limit` tasks (0: as many as trials) that share the trials of a random
// search. A task starts `processes` processes of the program. Throws as EstimateJobResources does.
void DescribeGrid(const Grid& grid, const GridOptions& options, int processes, JobSpec* job);

}  // namespace trainer
