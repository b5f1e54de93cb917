#pragma once

namespace trainer {

// This process among the ranks that train one model together. The solver gets it from its
// communicator (communicator.h). log.h decides which rank logs, and the solver which one writes
// snapshots.
struct Rank {
  int rank = 0;
  int size = 1;
};

}  // namespace trainer
