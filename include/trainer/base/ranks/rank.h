#pragma once

namespace trainer {

// This process among the ranks that train one model together. The solver gets it once, see
// communicator.h. Which rank logs is decided in log.h, which one writes snapshots by the solver.
struct Rank {
  int rank = 0;
  int size = 1;
};

}  // namespace trainer
