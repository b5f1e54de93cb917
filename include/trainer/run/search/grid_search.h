#pragma once
// Grid search: trains every trial of a grid in a child process, one after the other.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "trainer/config/solver_spec.h"
#include "trainer/run/jobs/job_script.h"
#include "trainer/run/search/grid.h"

namespace trainer {

// The solver, the values to combine, and where the trials are stored.
struct GridOptions {
  std::string solver;                    // file
  StateFlags state;                      // --level and --stage
  std::vector<std::string> assignments;  // values of --set: "base_lr=0.1,0.01"
  std::string folder;                    // of the trials' folders; "": <snapshot_prefix>_sweep
};

// The trials of a grid search, and the solver that they vary.
struct Grid {
  SolverSpec spec;  // with the first value of each list
  std::vector<Trial> trials;
};

// Returns the trials of a grid. Reads the solver of each trial, so that an error in any of them is
// thrown before the first one starts.
Grid LoadGrid(const GridOptions& options);

// How to train the trials.
struct GridSearchOptions {
  std::vector<std::string> train_flags;  // more flags of `trainer train`, for every trial
  std::optional<std::chrono::steady_clock::time_point> deadline;
  int stop_exit_code = 75;  // returned if a signal or the deadline stops the search
};

// Trains the trials that are not over yet; each resumes from its newest snapshot. Returns the exit
// code of the first trial that failed, kDiverged if all of them diverged, `search.stop_exit_code`
// if a signal or the deadline stops the search, or 0. Throws kCannotCreate if the folder of a trial
// holds another run, because its result would be taken for the trial's.
int RunTrials(const Grid& grid, const GridOptions& options, const GridSearchOptions& search);

// Completes `job`, which has what the user asks for, as a Slurm job array with one task per trial.
// A task starts `processes` processes of the program. Throws as EstimateJobResources does.
void DescribeGrid(const Grid& grid, const GridOptions& options, int processes, JobSpec* job);

}  // namespace trainer
