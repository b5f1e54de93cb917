#pragma once
// Reads the outputs of nets, which may be divided into stages.

#include <vector>

#include "solver_context.h"
#include "trainer/net/net.h"

namespace trainer {

// Returns every element of every output of `net`, in Caffe's numbering. `number` is the net's in
// ModelPartition. If this rank has only one stage, returns the outputs of all stages, and all ranks
// must call it.
std::vector<ReportedValue> ReadOutputs(const SolverContext& run, const Net& net, int number);

// Returns the outputs of the whole net if this rank has only one stage, with -0 in place of other
// stages' numbers: x + -0 is x, so the sum over the ranks gives each number unchanged.
std::vector<ReportedValue> OutputsOfStage(const SolverContext& run, const Net& net, int number);

}  // namespace trainer
