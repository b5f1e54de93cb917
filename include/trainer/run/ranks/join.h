#pragma once
// How the ranks of a run start and find each other.

#include "trainer/base/ranks/rank.h"
#include "trainer/config/solver_spec.h"
#include "trainer/parallel/world.h"
#include "trainer/run/device.h"
#include "trainer/run/ranks/rank_options.h"

namespace trainer {

// Returns how many ranks this process must start and wait for; 0: none, it computes itself. Throws
// kUsage for --ranks if mpirun or srun has started ranks already.
int RanksToStart(const RankOptions& options);
// Returns the same for commands that compute on GPUs: several GPUs get one rank each. Throws kUsage
// if --ranks is another number, and as RequestedGpus does.
int RanksToStart(const RankOptions& options, const DeviceOptions& device);

// Joins the ranks that started with this one and logs how their all-reduces work. Ranks other than
// 0 log only warnings from here on. Warns of tasks of a batch system that nothing joins. Returns
// null in a run alone. `patience`: seconds that a rank may wait for something else before it counts
// as silent.
World* JoinRanks(const RankOptions& options, int patience = 0);

// Sends the log of this rank to its own file if --log_all_ranks is given, unless it is rank 0.
void LogToRankFile(const RankOptions& options, const Rank& rank, const SolverSpec& spec);

}  // namespace trainer
