#pragma once
// Into how many parts a run splits each batch, and which of them this rank computes.

#include <string>

#include "trainer/base/ranks/communicator.h"
#include "trainer/checkpoint/solver_state.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

struct BatchParts {
  Rank first;     // counted among all parts
  int count = 1;  // of this rank
};

// A part for each virtual rank, or for each rank where the solver asks for none. `group` is null
// for a run alone. Throws kUsage where the ranks cannot share the parts evenly or cannot add in a
// tree, kConfig for a layer that looks beyond its part.
BatchParts PartsOf(const SolverSpec& spec, const Communicator* group);

// How many parts the iterations before a snapshot had.
int PartsIn(const caffe::SolverState& state);

// Warns where the iterations after a snapshot cannot be those of the run that made it.
void WarnOfOtherParts(const caffe::SolverState& state, const SolverSpec& spec, int parts,
                      int threads);

}  // namespace trainer
