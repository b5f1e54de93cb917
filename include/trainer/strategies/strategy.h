#pragma once
// How the ranks of a run train one model together. Each file in src/strategies/ that registers a
// strategy defines one way.

#include <concepts>
#include <functional>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

#include "trainer/base/ranks/communicator.h"
#include "trainer/base/ranks/shared_window.h"
#include "trainer/base/registry.h"
#include "trainer/config/solver_spec.h"
#include "trainer/optim/optimizer.h"

namespace trainer {

class Pipeline;

// The objects that a strategy works with: the rank's model and its connections to the other ranks.
struct StrategyContext {
  const Device& device;
  Objective& objective;
  Optimizer& optimizer;
  Communicator& group;
  SharedWindow* window;  // null if the ranks share no memory
  uint64_t seed;         // of the run
};

// Constructed from the solver alone, whose fields it checks; then prepared by every rank if there
// are several. The defaults suit synchronous data parallelism. Used by one thread.
class Strategy {
 public:
  // Properties of a strategy that never change; its constructor sets them.
  struct Traits {
    bool synchronous = true;  // all ranks make every step together
    // The ranks make no collective calls after Begin, and AfterStep returns the iteration that the
    // run has reached. Rank 0 then tests and saves alone.
    bool asynchronous = false;
    // Only this rank's own updates change its weights after Begin. If false, the weights of other
    // ranks change them, too.
    bool only_own_updates = true;
  };

  // Whether signals requested a stop or a snapshot.
  struct Requests {
    bool stop = false, snapshot = false;
  };
  // While a ConsensusScope exists, the rank has the consensus of all ranks' weights, which tests
  // and snapshots use. May be nested. Collective unless the strategy is asynchronous.
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

  virtual ~Strategy() = default;
  const Traits& traits() const { return traits_; }

  // Returns this strategy if it divides nets into stages, or null if each rank has whole nets.
  virtual Pipeline* pipeline() { return nullptr; }
  // Returns whether the step after `updates` updates reduces gradients and losses over the ranks.
  virtual bool ReducesGradients(int /*updates*/) const { return true; }
  // Returns whether all ranks synchronise after `updates` updates. Only at these points they agree
  // on what signals request.
  virtual bool IsSyncPoint(int /*updates*/) const { return true; }

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

  // Keeps `context`, which outlives the strategy, and allocates what the ranks share. Collective,
  // with equal weights and optimizer states on all ranks. Throws kUsage or kUnavailable if the
  // strategy cannot work with these ranks.
  void Prepare(const StrategyContext& context) {
    context_ = &context;
    Connect();
  }
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
  // Called after the step of iteration `iter`. Returns the iteration that follows.
  virtual int AfterStep(int iter) { return iter + 1; }
  // Returns what any rank requests; this rank requests `own`. The default is collective.
  virtual Requests Agree(const Requests& own);
  // Called only if traits().asynchronous: this rank makes no more steps, because the run was
  // stopped or is complete. Rank 0 waits for the others.
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

 protected:
  explicit Strategy(const Traits& traits) : traits_(traits) {}
  const StrategyContext& context() const { return *context_; }
  // While a ConsensusScope has replaced this rank's weights, returns its own ones; else nothing.
  std::span<const float> own_weights() const { return own_weights_; }

 private:
  // Does the strategy's part of Prepare.
  virtual void Connect() {}
  // Returns the consensus of all ranks' weights, valid until the next call; nothing if it is this
  // rank's weights.
  virtual std::span<const float> Consensus() { return {}; }
  // Replaces this rank's weights by the consensus, until LeaveConsensus restores them.
  void EnterConsensus();
  void LeaveConsensus();

  Traits traits_;
  const StrategyContext* context_ = nullptr;
  std::vector<float> own_weights_;
  int scopes_ = 0;
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

// Throws kConfig for a BatchNorm of the training net that is synchronized, i.e. that averages its
// moments over ranks: "synchronized is true" + why + "; remove one of the two".
void RequireOwnMoments(const SolverSpec& spec, const std::string& why);

}  // namespace trainer
