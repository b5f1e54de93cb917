#pragma once
// The plan of a pipeline: which stage of every net each rank computes, and the micro-batches of a
// batch.

#include <string>
#include <vector>

#include "trainer/config/solver_spec.h"
#include "trainer/net/partition.h"

namespace trainer {

struct PipelinePlan {
  int stages = 1;
  int micro_batches = 1;           // of each batch of the training net
  int64_t records = 0;             // per micro-batch; 0: unknown
  std::vector<NetPartition> nets;  // the training net, then the test nets

  // Returns the largest number of micro-batches in flight in a stage, i.e. after its forward pass
  // and before its backward pass.
  int UnderWay(int stage) const { return stages - stage; }
  // Returns the fraction of the time in which a stage waits, with one-forward-one-backward: (p - 1)
  // / (m + p - 1) with p stages and m = `passes` micro-batches. It waits while the first
  // micro-batch reaches it and while the last one leaves it. Source: D. Narayanan et al.,
  // "Memory-efficient pipeline-parallel DNN training", ICML 2021.
  double Bubble(int passes) const;
};

// Cuts all nets of the solver, whose strategy is pipeline, into `stages` stages. Throws kConfig at
// the field or layer that does not work in a pipeline.
PipelinePlan PlanPipeline(const SolverSpec& spec, const Device& device, int stages);

// Returns the solver of one rank. Its nets are the rank's stages, and its iter_size counts
// micro-batches. Moves the stages out of *plan.
SolverSpec SpecOfStage(const SolverSpec& spec, PipelinePlan* plan, int stage);

}  // namespace trainer
