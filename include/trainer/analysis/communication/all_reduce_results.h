#pragma once
// The file that `trainer bench-comm --json=FILE` writes and `trainer plan --link=FILE` reads.

#include <string>
#include <vector>

#include "trainer/analysis/scaling/link_model.h"

namespace trainer {

// Measured all-reduces, from which FitCluster makes a model.
struct AllReduceResults {
  int ranks = 0;
  int machines = 1;
  int ranks_per_machine = 1;
  std::vector<TransferTime> sums;  // bytes of gradients, seconds of their all-reduce
  double overlap_cost = 0;         // see ClusterModel
};

// Writes the results as JSON. `mpi_seconds` holds the time of MPI_Allreduce for each size; it is
// empty without MPI, and ReadAllReduceResults ignores it. Throws as WriteWhole does.
void WriteAllReduceResults(const std::string& path, const AllReduceResults& results,
                           const std::vector<double>& mpi_seconds);

// Throws as ReadFile does, and kData for a file of another kind.
AllReduceResults ReadAllReduceResults(const std::string& path);

}  // namespace trainer
