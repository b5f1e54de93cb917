#pragma once
// Ranks that train on 26 rows of an HDF5 file, for tests. Ranks are threads of one process.

#include <functional>
#include <string>

#include "small_run.h"
#include "support/thread_group.h"

namespace trainer {

// A folder with the rows "x" (26 x 6) and "label" (26, four classes).
class RowsFolder {
 public:
  RowsFolder();

  // Returns a solver of `fields`, plus net, snapshot_prefix, display and, unless they set it, a
  // fixed lr_policy. Replaces "ROWS" in `net` by the list of data files and "BATCH" by `batch`.
  SolverSpec Spec(std::string net, const std::string& fields, int batch = 0) const;

  std::string operator/(const std::string& name) const { return folder_ / name; }

 private:
  TempFolder folder_;
};

// Runs `run` on each of `count` ranks; `snapshot` and the rank's group are in the options. `eager`
// says how the ThreadGroup sums.
void RunRanks(int count, bool eager, const std::string& snapshot,
              const std::function<void(const SolverOptions&, ThreadGroup&)>& run);

}  // namespace trainer
