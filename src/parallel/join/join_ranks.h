#pragma once
// Joins this process with the other ranks.

#include <optional>

#include "mpi/mpi.h"
#include "node/control_block.h"
#include "trainer/parallel/environment.h"
#include "trainer/parallel/topology.h"

namespace trainer {

struct JoinedRank {
  Topology topology;
  std::optional<ControlBlock> block;  // of this node
};

// Returns the rank, names and topology of a process of LaunchRanks, with the node's control block
// mapped. Removes TRAINER_WORLD from the environment, so that programs
// that this rank starts do not join.
JoinedRank JoinForked(const LaunchEnvironment& environment);
// Joins the ranks of MPI's world. If the ranks of a node may not open each other's memory, each
// rank counts as a node of its own.
JoinedRank JoinMpi(Mpi& mpi);

}  // namespace trainer
