#pragma once
// What a run holds in memory, by what it is for.

#include <functional>
#include <string>
#include <vector>

#include "plan_gpu.h"
#include "trainer/config/solver_spec.h"
#include "trainer/net/net.h"
#include "trainer/steps/step_rule.h"

namespace trainer {

// Bytes of the batches that the net's threads read ahead.
size_t AheadBytes(const Net& net);

// What `trainer plan`, check, train, find-batch and job count of a run's memory.
struct PlannedTotals {
  size_t weights = 0, gradients = 0;
  int states_per_weight = 0;
  size_t rule = 0;      // all that the step rule holds
  size_t averages = 0;  // the averaged weights of ema_decay
  size_t snapshot = 0;  // the copy that a snapshot is written from; 0 without snapshots
  size_t values = 0;    // of all nets
  size_t staged = 0;    // of those on their way to a GPU
  size_t ahead = 0;     // batches read ahead, in memory of the host
  int parts = 1;        // virtual ranks
  size_t part_sums = 0;

  void AddNet(const Net& net);
  // Sets everything that a run of `spec` holds on one rank, except the values of its nets. `train`
  // is the training net, which may be planned only; `weight_bytes` counts the weights of all nets.
  void SetRun(const SolverSpec& spec, const StepRule& rule, const Net& train, size_t weight_bytes);
};

// The copy of a run's state that a snapshot is written from; 0 for a run without snapshots.
size_t SnapshotCopyBytes(const caffe::SolverParameter& solver, const StepRule& rule, size_t weights,
                         size_t gradients);

// Sets what the training net of a run must know of its step rule before it is built.
void AdaptTo(const StepRule& rule, NetOptions* options);

std::vector<PlannedPart> PartsOf(const PlannedTotals& totals, const PlanTarget& target);

// Of a whole run of `spec` on the device, and the multiply-adds of one forward pass of its training
// net.
struct PlannedRun {
  PlannedTotals totals;
  size_t train_values = 0;  // of the training net alone
  int computed_again = 0;   // outputs of it
  int64_t macs = 0;
};
struct PlanRunOptions {
  size_t most_value_bytes = 0;  // of NetOptions, for the training net
  MemoryMode memory = MemoryMode::kShared;
  // Called with each net once it is planned, such as "training net" and "test net (#0)".
  std::function<void(const std::string& title, const Net& net)> see = {};
};
PlannedRun PlanRun(const SolverSpec& spec, const Device& device,
                   const PlanRunOptions& options = {});

}  // namespace trainer
