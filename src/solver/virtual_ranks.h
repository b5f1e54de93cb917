#pragma once
// The virtual ranks of a run, and which of them this rank computes.

#include <string>

#include "trainer/base/ranks/communicator.h"
#include "trainer/checkpoint/solver_state.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

struct VirtualRanks {
  Rank first;     // the first one, among all virtual ranks
  int count = 1;  // how many this rank computes
};

// The solver's virtual ranks, or one for each rank if it sets none. `group` is null with one rank.
// Throws kUsage if the ranks cannot divide the virtual ranks evenly or cannot add in a tree, and
// kConfig for a layer that needs more than its virtual rank's records.
VirtualRanks VirtualRanksOf(const SolverSpec& spec, const Communicator* group);

// How many virtual ranks the iterations before a snapshot had.
int VirtualRanksIn(const caffe::SolverState& state);

// Warns if the iterations after a snapshot cannot equal those of the run that wrote it.
void WarnOfOtherVirtualRanks(const caffe::SolverState& state, const SolverSpec& spec,
                             int virtual_ranks, int threads);

}  // namespace trainer
