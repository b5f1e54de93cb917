#pragma once
// A cluster as its sums were measured (`trainer bench-comm`).

#include <string>
#include <vector>

#include "trainer/scaling/cluster.h"

namespace trainer {

struct MeasuredSums {
  int ranks = 0;
  int machines = 1;
  int ranks_per_machine = 1;
  std::vector<TransferTime> sums;  // bytes of gradients, seconds of their sum
  double overlap_cost = 0;         // see Cluster
};

// The cluster for which TimeOfSum gives these sums: on one machine what its memory moves, on
// several ones the link between them, with what `inside` says of each machine. Throws kData for
// fewer than two sizes, or times that no cluster has.
Cluster ClusterOf(const std::string& name, const MeasuredSums& measured,
                  const InsideMachine& inside = {});

}  // namespace trainer
