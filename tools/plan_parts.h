#pragma once
// What a run holds in memory, by what it is for.

#include <vector>

#include "plan_gpu.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

// Bytes of the batches that the net's threads read ahead.
size_t AheadBytes(const Net& net);

// How many numbers of a snapshot a weight has; 0 for a run without snapshots. `states`: those of
// the update rule.
int SavedPerWeight(const caffe::SolverParameter& solver, int states);

struct PlannedTotals {
  size_t weights = 0, gradients = 0;
  int states_per_weight = 0, saved_per_weight = 0;
  size_t values = 0;  // of all nets
  size_t staged = 0;  // of those on their way to a GPU
  size_t ahead = 0;   // batches read ahead, in memory of the host
  int parts = 1;      // virtual ranks
  size_t part_sums = 0;

  void AddNet(const Net& net);
  void SetParts(const Net& train, const caffe::SolverParameter& solver);
};

std::vector<PlannedPart> PartsOf(const PlannedTotals& totals, const PlanTarget& target);

// Of a whole run of `spec` on the device, and the multiply-adds of one forward pass of its training
// net. `most_value_bytes`: of NetOptions, for that net.
struct PlannedRun {
  PlannedTotals totals;
  size_t train_values = 0;  // of the training net alone
  int computed_again = 0;   // outputs of it
  int64_t macs = 0;
};
PlannedRun PlanRun(const SolverSpec& spec, const Device& device, size_t most_value_bytes = 0);

}  // namespace trainer
