#pragma once
// Joins this process with the other ranks.

#include <optional>
#include <string>
#include <vector>

#include "join/node_map.h"
#include "mpi/mpi.h"
#include "node/control_block.h"
#include "trainer/base/ranks/rank.h"
#include "trainer/parallel/environment.h"
#include "trainer/parallel/world.h"

namespace trainer {

struct JoinedRank {
  Rank rank;
  NodeMap map;
  std::vector<std::string> names;     // "rank 1 (node7, process 4711)"
  std::optional<ControlBlock> block;  // of this node
  World::Locals locals;
};

// Joins the processes of LaunchRanks. Removes TRAINER_WORLD from the environment, so that programs
// that this rank starts do not join.
JoinedRank JoinForked(const LaunchEnvironment& environment);
// Joins the ranks of MPI's world. If the ranks of a node may not open each other's memory, each
// rank counts as a node of its own.
JoinedRank JoinMpi(Mpi& mpi);

}  // namespace trainer
