#pragma once
// The virtual ranks of a run and the ones among them that this rank computes.

#include <string>

#include "trainer/base/ranks/communicator.h"
#include "trainer/checkpoint/solver_state.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

struct VirtualRanks {
  Rank first;     // the first one, among all virtual ranks
  int count = 1;  // how many this rank computes
};

// Returns this rank's share of the solver's virtual ranks, or one virtual rank per rank if the
// solver sets none. `group` is null with one rank. Throws kUsage if the ranks cannot divide the
// virtual ranks evenly or cannot add in a tree, and kConfig for a layer that needs records of the
// whole batch.
VirtualRanks VirtualRanksOf(const SolverSpec& spec, const Communicator* group);

// Returns how many virtual ranks the run that wrote a snapshot had.
int VirtualRanksIn(const caffe::SolverState& state);

// Warns if this run cannot give the same results as the run that wrote the snapshot.
void WarnOfOtherVirtualRanks(const caffe::SolverState& state, const SolverSpec& spec,
                             int virtual_ranks, int threads);

}  // namespace trainer
