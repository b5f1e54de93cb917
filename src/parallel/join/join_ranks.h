#pragma once
// How a process joins the other ranks.

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

// Joins the processes of LaunchRanks.
JoinedRank JoinForked(const LaunchEnvironment& environment);
// Joins the ranks of MPI's world. If the ranks of a node may not open each other's memory, each
// counts as a node of its own.
JoinedRank JoinMpi(Mpi& mpi);

}  // namespace trainer
