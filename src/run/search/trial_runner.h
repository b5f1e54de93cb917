#pragma once
// Trains the runs of a sweep in child processes.

#include <optional>
#include <string>
#include <vector>

#include "trainer/base/process/child_process.h"
#include "trainer/config/solver_spec.h"
#include "trainer/run/search/grid.h"
#include "trainer/run/search/grid_search.h"

namespace trainer {

// Reads the solver with these changes of --set.
SolverSpec LoadWithChanges(const GridOptions& options, const std::vector<std::string>& changes);

// Applies the batch of a trial, unless it is "", without a line in the log.
void SetBatch(const std::string& batch, SolverSpec* spec);

// Reads the solver with the changes and the batch of the trial, and adds the trial's name to
// errors.
SolverSpec LoadTrial(const GridOptions& options, const Trial& trial);

// Makes the folder of a run and writes its solver there. If an earlier start has written one,
// throws kCannotCreate unless it is the same.
void PrepareFolder(const GridOptions& options, const Trial& trial);

// Throws kUsage if both `search.train_flags` and a trial set the batch.
void RequireOneBatch(const Grid& grid, const GridSearchOptions& search);

// Used by the main thread.
class TrialRunner {
 public:
  // The arguments must outlive the object.
  TrialRunner(const GridOptions& options, const GridSearchOptions& search);

  // Trains a run to its end, or until the iteration `until` (see UntilIter), and appends its exit
  // code to its log. Starts nothing and returns kStopped if the deadline has passed or a stop was
  // asked for.
  ExitStatus Train(const Trial& trial, const std::string& until = "");

  // Returns whether a run with this status was asked to stop.
  static bool IsStop(const ExitStatus& status);
  // Returns "stopped", or the signal that ended the run, with what to do.
  static std::string DescribeStop(const ExitStatus& status);

 private:
  const GridOptions& options_;
  const GridSearchOptions& search_;
  std::optional<ChildProcess> child_;  // unless `search_` has its own way to run
};

}  // namespace trainer
