#pragma once
// Where a run starts: the flags that `train` and `check` have for it.

#include <string>
#include <vector>

#include "trainer/cli/flag_set.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

Flag SnapshotFlag();
Flag AllowOutsideFlag();
Flag ResumeFlag();
Flag StartWeightsFlag();

// Throws kUsage for flags that say two different starts.
void RefuseTwoStarts(const Flags& flags);

// The weights to start from; those of the command line replace the solver's.
std::vector<std::string> WeightFiles(const Flags& flags, const SolverSpec& spec);

// Where a run goes on: a state and its iteration.
struct ResumePoint {
  std::string state;  // "": it begins
  int iter = 0;       // known with --resume alone
};

// Returns the snapshot that --snapshot names, or the newest one that --resume=auto finds by the
// solver's snapshot_prefix or in `rescue_folders`, and logs it. Throws as NewestSnapshot does.
ResumePoint WhereToResume(const Flags& flags, const SolverSpec& spec,
                          const std::vector<std::string>& rescue_folders);

}  // namespace trainer
