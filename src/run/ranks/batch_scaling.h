#pragma once
// The batch and the learning rate of several ranks.

#include "trainer/base/ranks/rank.h"
#include "trainer/config/solver_spec.h"
#include "trainer/run/ranks/rank_options.h"

namespace trainer {

// Returns how many batches one pass reads over all ranks: one per rank that computes its own
// batches, or one per virtual rank.
int BatchParts(const SolverSpec& spec, const Rank& rank);

// Applies --global_batch, --scale_lr and --sync_batch_norm to the solver, and logs the batch of an
// iteration and the learning rate. Throws kUsage if a batch is not divisible by the ranks.
void ScaleForRanks(const RankOptions& options, const Rank& rank, SolverSpec* spec);

}  // namespace trainer
