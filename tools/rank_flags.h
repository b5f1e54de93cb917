#pragma once
// Several ranks that train together: their flags, and what they must agree on.

#include <vector>

#include "flags.h"
#include "trainer/backend/device.h"
#include "trainer/config/solver_spec.h"
#include "trainer/parallel/world.h"

namespace trainer {

// --ranks, --bucket_size, --peer_timeout and --peer_warning.
std::vector<Flag> RankFlags();
// The flags of a verb that trains: `flags`, those, --global_batch, --scale_lr, --sync_batch_norm
// and
// --log_all_ranks.
std::vector<Flag> WithRankFlags(std::vector<Flag> flags);

// Whether this process shall start the ranks and wait for them. Throws kUsage for --ranks where
// mpirun or srun has started some already.
bool StartsRanks(const Flags& flags);

// JoinWorld, with the flags; logs how sums travel, and ranks other than 0 log warnings alone from
// here on. Warns of tasks of a batch system that nothing joins. Null in a run alone. A rank may
// wait `patience` seconds for something else before it is silent.
World* JoinRanks(const Flags& flags, int patience = 0);

// Where --log_all_ranks is given and this is not rank 0: its lines go to a file of its own.
void LogOfRank(const Flags& flags, const Replica& replica, const SolverSpec& spec);

// Makes of --global_batch, --scale_lr and --sync_batch_norm what the run uses, and logs its batch
// and rate. Throws kUsage where a batch cannot be divided.
void ScaleForRanks(const Flags& flags, const Replica& replica, SolverSpec* spec);

// Throws kProtocol where another rank has another program, solver, net, data, number of threads or
// kind of processor; kUnavailable for a GPU.
void RequireEqualRanks(World& world, const SolverSpec& spec, const Device& device);

}  // namespace trainer
