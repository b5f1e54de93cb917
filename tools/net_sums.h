#pragma once
// How long ranks take to sum all gradients of a net.

#include <string>

#include "stopwatch.h"
#include "trainer/config/solver_spec.h"
#include "trainer/parallel/world.h"

namespace trainer {

struct NetSums {
  std::string net;
  int parameters = 0;  // that learn
  size_t bytes = 0;    // of their gradients
  // Of one exchange: all gradients in buckets, as training sums them; one MPI_Allreduce for each
  // parameter (empty without MPI).
  Samples buckets, by_parameter;

  std::string ToString() const;
};

// All ranks call it. The net is planned alone; its databases must be there.
NetSums SumGradients(World& world, const SolverSpec& solver, int rounds);

}  // namespace trainer
