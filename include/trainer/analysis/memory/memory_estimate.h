#pragma once
// The memory that a run holds. Every verb that counts the memory of a run counts it here.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/analysis/memory/memory_room.h"
#include "trainer/base/text/json.h"
#include "trainer/config/solver_spec.h"
#include "trainer/net/net.h"
#include "trainer/optim/optimizer.h"

namespace trainer {

class Solver;

// One kind of memory that a run holds.
struct MemoryItem {
  const char* key;   // in JSON: "rule_state"
  std::string name;  // in text: "rule state"
  size_t bytes = 0;
  bool grows = false;  // with the batch
};

// Returns the sum of the items' bytes.
size_t TotalBytes(const std::vector<MemoryItem>& items);
// Returns a line for each item that takes memory, the largest first.
std::string ToText(const std::vector<MemoryItem>& items);
// Returns an object with the bytes of each item, and their sum as "together".
Json ToJson(const std::vector<MemoryItem>& items);
// Returns the three largest items: "values of all nets 1.20 GiB, parameters 300.0 MiB, ..."
std::string DescribeLargest(std::vector<MemoryItem> items);

// The memory of a run on one rank, in bytes.
struct MemoryEstimate {
  size_t weights = 0, gradients = 0;  // weights: of all nets
  int states_per_weight = 0;
  size_t rule_state = 0;     // all that the step rule holds
  size_t ema_weights = 0;    // the averaged weights of ema_decay
  size_t snapshot_copy = 0;  // the copy that a snapshot is written from; 0 without snapshots
  size_t activations = 0;    // activations and scratch of all nets, staging included
  size_t staging = 0;        // batches in transfer to a GPU
  size_t prefetched = 0;     // batches that data layers prefetch into memory of the host
  int virtual_ranks = 1;     // that the rank computes one after the other
  size_t part_sums = 0;      // the sums over their parts of a batch

  // These four describe the training net.
  size_t train_activations = 0;
  int recomputed = 0;  // outputs that the backward pass computes again
  int64_t macs = 0;    // multiply-adds of a forward pass
  int64_t batch = 0;   // records of a batch

  // Adds the activations and the staging memory of `graph`, once for each of its activation slots,
  // and the prefetched batches.
  void AddNet(const Graph& graph);
  // Sets everything that a run of `spec` holds on one rank, except what AddNet adds and the weights
  // that only test nets have. `train` is the training net; `parts` is the number of virtual ranks
  // that this rank computes.
  void SetRun(const SolverSpec& spec, const Optimizer& rule, const Graph& train, int parts);

  // Returns the parts that are in memory of the room's kind, host or GPU, and on the host the
  // memory of the program itself. The GPU's context counts only in a room that is estimated.
  std::vector<MemoryItem> Items(const MemoryRoom& room) const;
};

// Plans runs of one solver with different batches of the training net. The test nets are planned
// in the first estimate only, because they do not depend on the training batch and the planning of
// an exact test pass counts the records of its data.
class MemoryEstimator {
 public:
  using OnNet = std::function<void(const std::string& title, const Graph& graph)>;

  // `device` must outlive the estimator. `on_net`, if set, is called with each net that is planned:
  // "training net", "test net (#0)", "test net (#0), last batch".
  explicit MemoryEstimator(const Device& device, BufferReuse memory = BufferReuse::kShared,
                           OnNet on_net = {});

  // Compiles the nets of `spec`, without memory for them. `activation_budget_bytes`: of
  // NetOptions, for the training net. Throws what Compile throws.
  MemoryEstimate Estimate(const SolverSpec& spec, size_t activation_budget_bytes = 0);

 private:
  // The part of an estimate that the test nets add, kept for the next estimates.
  struct TestEstimate {
    MemoryEstimate nets;
    size_t weights = 0;  // that the training net does not have
  };

  const Device& device_;
  BufferReuse memory_;
  OnNet on_net_;
  std::optional<TestEstimate> tests_;
};

// Returns the memory that a run of `spec` on `device` will hold, by a plan of its nets.
MemoryEstimate EstimateMemory(const SolverSpec& spec, const Device& device);
// Returns the memory that the run of a solver holds from its first iteration on, by the nets that
// the solver has built.
MemoryEstimate EstimateMemory(const SolverSpec& spec, Solver& solver);
// Returns the memory of one net alone, without a solver.
MemoryEstimate EstimateMemory(const Graph& graph, const ParamStore& params);

// Returns the bytes of the copy of a run's state that a snapshot is written from; 0 without
// snapshots. `weights` and `gradients` are the bytes of both.
size_t SnapshotCopyBytes(const caffe::SolverParameter& solver, const Optimizer& rule,
                         size_t weights, size_t gradients);

// Sets the options of a training net that depend on its step rule. Call before the net is built.
void AdaptNetOptions(const Optimizer& rule, NetOptions* options);

// Returns the records in a batch of the first data layer; 0 without one.
int64_t BatchSizeOf(const Graph& graph);
// Returns the bytes that the plan of `graph` has for batches in transfer to a GPU.
size_t StagingBytes(const Graph& graph);
// Returns how many outputs the backward pass of a planned net computes again.
int CountRecomputed(const MemoryPlan& plan);

}  // namespace trainer
