#pragma once
// What each rank of a pipeline computes: its stage of every net, and the passes of a batch.

#include <string>
#include <vector>

#include "trainer/config/solver_spec.h"
#include "trainer/net/partition.h"

namespace trainer {

struct PipelinePlan {
  int stages = 1;
  int micro_batches = 1;           // of each batch of the training net
  int64_t records = 0;             // of one; 0: unknown
  std::vector<NetPartition> nets;  // the training net, then the test nets

  // Passes of a stage that are forward and not yet backward at once.
  int UnderWay(int stage) const { return stages - stage; }
  // The share of the time in which a stage waits, with one-forward-one-backward: while the first
  // micro-batch comes to it and the last one goes on. (p - 1) / (m + p - 1) of p stages and m
  // micro-batches. Source: D. Narayanan et al., "Memory-efficient pipeline-parallel DNN training",
  // ICML 2021.
  double Bubble(int passes) const;
};

// Cuts all nets of the solver, whose strategy is pipeline, into `stages` stages. Throws kConfig at
// the field or layer that does not go together with it.
PipelinePlan PlanPipeline(const SolverSpec& spec, const Device& device, int stages);

// Where the solver goes on with its stages: the nets of one rank, and a pass for each micro-batch.
SolverSpec SpecOfStage(const SolverSpec& spec, PipelinePlan* plan, int stage);

}  // namespace trainer
