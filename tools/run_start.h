#pragma once
// Where a run starts: the flags that `train` and `check` have for it.

#include <string>
#include <vector>

#include "flags.h"
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

// What --snapshot names, or what --resume=auto finds, which the log then says. Throws as
// NewestSnapshot does.
ResumePoint WhereToResume(const Flags& flags, const SolverSpec& spec);

}  // namespace trainer
