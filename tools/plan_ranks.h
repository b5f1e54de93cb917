#pragma once
// The scaling flags of a verb that still reads Flags.

#include <vector>

#include "trainer/cli/flag_set.h"

namespace trainer {

// `flags` and those of scaling_flags.h.
std::vector<Flag> WithPlanRanksFlags(std::vector<Flag> flags);

// The numbers of --ranks. Throws kUsage.
std::vector<int> RanksOf(const Flags& flags);

// Prints the prediction for the solver or net of the flags. Returns the exit code.
int PlanRanks(const Flags& flags);

}  // namespace trainer
