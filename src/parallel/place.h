#pragma once
// How a process finds the other ranks.

#include <optional>
#include <string>
#include <vector>

#include "mpi_library.h"
#include "node_block.h"
#include "node_map.h"
#include "trainer/base/ranks/rank.h"
#include "trainer/parallel/environment.h"
#include "trainer/parallel/world.h"

namespace trainer {

struct Place {
  Rank replica;
  NodeMap map;
  std::vector<std::string> names;  // "rank 1 (node7, process 4711)"
  std::optional<NodeBlock> block;  // of this machine
  World::Locals locals;
};

// Among the processes of LaunchRanks.
Place JoinOwn(const RankEnvironment& environment);
// In MPI's world. Where the ranks of a machine may not open each other's memory, each counts as a
// machine of its own.
Place JoinMpi(MpiLibrary& mpi);

}  // namespace trainer
