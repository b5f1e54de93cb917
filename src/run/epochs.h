#pragma once
// The length of a run in epochs.

#include <string>

#include "trainer/base/ranks/communicator.h"
#include "trainer/config/solver_spec.h"
#include "trainer/run/ranks/rank_options.h"

namespace trainer {

// Replaces times that the solver gives in epochs by iterations, and logs both. Does nothing for
// other solvers. Call it before the batch is divided among the ranks. Rank 0 counts the records, so
// the call is collective; `group` is null in a run alone. Returns the line of the log, or "".
// Throws kConfig at the solver's field if no data layer of the training net has epochs, and as
// ResolveEpochs does.
std::string ApplyEpochs(const RankOptions& options, const Rank& rank, Communicator* group,
                        SolverSpec* spec);

}  // namespace trainer
