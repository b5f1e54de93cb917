#pragma once
// How the ranks of a run train one model together. Each file in src/strategies/ that registers a
// strategy defines one way.

#include <concepts>
#include <functional>
#include <memory>
#include <memory_resource>
#include <string>
#include <vector>

#include "trainer/base/ranks/communicator.h"
#include "trainer/base/ranks/shared_window.h"
#include "trainer/base/registry.h"
#include "trainer/config/solver_spec.h"
#include "trainer/net/partition.h"
#include "trainer/optim/optimizer.h"

namespace trainer {

// The objects that a strategy works with: the rank's model and its connections to the other ranks.
struct StrategyContext {
  const Device& device;
  Objective& objective;
  Optimizer& optimizer;
  Communicator& group;
  SharedWindow* window;  // null if the ranks share no memory
  uint64_t seed;         // of the run
};

// Model parallelism: each rank has one stage of every net. Net 0 is the training net, net i + 1 the
// i-th test net.
class ModelPartition {
 public:
  virtual ~ModelPartition() = default;
  // Cuts the nets and returns the solver with this rank's stages as its nets. Called before
  // Prepare. Throws kConfig at the layer where a net cannot be cut. `spec` and `device` must
  // outlive the strategy.
  virtual const SolverSpec& Partition(const SolverSpec& spec, const Device& device,
                                      const Rank& rank) = 0;
  // Returns how net `net` was cut: the layers of all stages and what passes between them.
  virtual const NetPartition& WholeNet(int net) const = 0;
  // Sets what this rank's stage of net `net` needs to be built, such as the values at its boundary.
  virtual void SetOptions(int net, NetOptions* options) const = 0;
  // Runs a forward pass of this rank's stage of a test net and returns the stage's loss. All ranks
  // call it equally often.
  virtual float ForwardTest(Net& part, int net) = 0;
  // On rank 0, calls take(bytes) with the `own` of each other rank, in the order of the ranks.
  virtual void Collect(const std::string& own,
                       const std::function<void(const std::string& bytes)>& take) = 0;
};

struct Requests {
  bool stop = false, snapshot = false;
};

// Constructed from the solver alone, whose fields it checks; then prepared by every rank if there
// are several. The defaults suit synchronous data parallelism. Used by one thread.
class Strategy {
 public:
  virtual ~Strategy() = default;

  // Returns this strategy's model parallelism, or null if each rank has whole nets.
  virtual ModelPartition* partition() { return nullptr; }
  // Returns whether all ranks make every step together.
  virtual bool IsSynchronous() const { return true; }
  // Returns whether the step after `updates` updates reduces gradients and losses over the ranks.
  virtual bool ReducesGradients(int /*updates*/) const { return true; }
  // Returns whether all ranks synchronise after `updates` updates. Only at these points they agree
  // on what signals request.
  virtual bool IsSyncPoint(int /*updates*/) const { return true; }
  // Returns whether only this rank's own updates change its weights after Begin. If false, the
  // weights of other ranks change them, too.
  virtual bool OnlyOwnUpdates() const { return IsSynchronous(); }
  // Returns whether the ranks make no collective calls after Begin, and each asks NextIteration for
  // the iteration that the run has reached. Rank 0 then tests and saves alone.
  virtual bool IsAsynchronous() const { return false; }

  // Returns the memory for the weights of the training net and the optimizer's state; null: the
  // device's own. Called before Prepare; all ranks allocate the same blocks in the same order.
  // Throws kUnavailable.
  virtual std::pmr::memory_resource* WeightMemory(const Device& /*device*/,
                                                  SharedWindow* /*peers*/) {
    return nullptr;
  }

  // Returns the optimizer of the training net. Called after WeightMemory.
  virtual std::unique_ptr<Optimizer> MakeOptimizer(const SolverSpec& spec,
                                                   const Device& /*device*/) {
    return trainer::MakeOptimizer(spec);
  }

  // Allocates what the ranks share and keeps `context`, which outlives the strategy. Collective,
  // with equal weights and optimizer states on all ranks. Throws kUsage or kUnavailable if the
  // strategy cannot work with these ranks.
  virtual void Prepare(const StrategyContext& /*context*/) {}
  // Restores what SaveRanks returned for this rank in a run with as many ranks. Throws kBadSnapshot
  // if it is something else.
  virtual void LoadRank(const std::string& /*state*/) {}
  // States that training begins after `updates` updates, which are 0 unless the run is resumed.
  // Collective.
  virtual void Begin(int /*updates*/) {}

  // Returns how many of `ranks` ranks make steps: the first ones. The others call RunServer.
  virtual int Workers(int ranks) const { return ranks; }
  // Serves the workers until they have finished. Called by a rank that makes no steps. stops()
  // returns whether this rank was asked to stop the run.
  virtual void RunServer(const std::function<bool()>& /*stops*/) {}

  // Called in each step after its gradients are computed and before any weight changes, with the
  // hyperparameters of the update.
  virtual void BeforeUpdate(const Hyperparams& /*rates*/) {}
  // Called after a step, when `updates` updates have been made.
  virtual void AfterStep(int /*updates*/) {}
  // Returns the iteration that follows `iter`.
  virtual int NextIteration(int iter) { return iter + 1; }
  // Called only if IsAsynchronous(): returns what any rank requests; this rank requests `own`.
  virtual Requests Agree(const Requests& own) { return own; }
  // Called only if IsAsynchronous(): this rank makes no more steps, because the run was stopped or
  // is complete. Rank 0 waits for the others.
  virtual void Finish(bool /*stopped*/) {}

  // Called last by all ranks, when everything is saved. Returns when no other rank needs this one.
  virtual void Release() {}

  // Returns, on rank 0, the record of each rank that a resumed run needs in addition to the weights
  // in the files; elsewhere nothing. Called within a ConsensusScope.
  virtual std::vector<std::string> SaveRanks() { return {}; }
  // Returns the largest number of bytes that SaveRanks returns.
  virtual size_t MaxStateBytes() const { return 0; }
  // Returns a line for the log at the end (exchanges, bytes, staleness), or "".
  virtual std::string Describe() const { return ""; }

 private:
  friend class ConsensusScope;
  // Replaces this rank's weights by the consensus of all ranks, until LeaveConsensus restores them.
  virtual void EnterConsensus() {}
  // Restores the weights that this rank had before EnterConsensus.
  virtual void LeaveConsensus() {}
  int scopes_ = 0;
};

// While a ConsensusScope exists, the rank has the consensus of all ranks' weights, which tests and
// snapshots use. May be nested. Collective unless the strategy is asynchronous.
class ConsensusScope {
 public:
  explicit ConsensusScope(Strategy& strategy) : strategy_(strategy) {
    if (strategy_.scopes_++ == 0) strategy_.EnterConsensus();
  }
  ~ConsensusScope() {
    if (--strategy_.scopes_ == 0) strategy_.LeaveConsensus();
  }
  ConsensusScope(const ConsensusScope&) = delete;
  ConsensusScope& operator=(const ConsensusScope&) = delete;

 private:
  Strategy& strategy_;
};

using StrategyRegistry = Registry<Strategy, const SolverSpec&>;

// Registers the class of a strategy from its own file: const RegisterStrategy<Gossip>
// kGossip("gossip");
template <std::constructible_from<const SolverSpec&> T>
using RegisterStrategy = Registration<Strategy, T, const SolverSpec&>;

// Returns the strategy that the solver names. With one rank, checks its fields and returns the
// synchronous strategy. Throws kConfig at the line of an unknown name, with the nearest one, and of
// fields that the strategy refuses.
std::unique_ptr<Strategy> MakeStrategy(const SolverSpec& spec, int ranks);

}  // namespace trainer
