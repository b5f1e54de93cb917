#pragma once
// How the ranks of a run train one model together. One file in src/strategies/ defines one.

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
#include "trainer/steps/step_rule.h"

namespace trainer {

// What a rank trains, and how it reaches the others.
struct StrategySeat {
  const Device& device;
  Objective& objective;
  StepRule& rule;
  Communicator& group;
  SharedWindow* peers;  // null where the ranks share no memory
  uint64_t seed;        // of the run
};

// Of a strategy in which each rank has a part of every net. Net 0 is the training net, net i + 1
// the i-th test net.
class NetDivision {
 public:
  virtual ~NetDivision() = default;
  // The solver with the parts of this rank as its nets. Before Prepare: cuts them. Throws kConfig
  // at the layer that cannot be cut so. `spec` and `device` must outlive the strategy.
  virtual const SolverSpec& Divide(const SolverSpec& spec, const Device& device,
                                   const Rank& replica) = 0;
  virtual const NetPartition& Whole(int net) const = 0;
  virtual void SetOptions(int net, NetOptions* options) const = 0;
  // A forward pass of this rank's part of a test net, between those of the others; returns its
  // loss. All ranks call it as often.
  virtual float ForwardTest(Net& part, int net) = 0;
  // On rank 0 calls take(bytes) with what each other rank gave, in their order.
  virtual void Collect(const std::string& own,
                       const std::function<void(const std::string& bytes)>& take) = 0;
};

struct RankWishes {
  bool stop = false, snapshot = false;
};

// Made from the solver alone, which it checks; then prepared by every rank of a run of several. A
// member that is not overridden does what synchronous replicas do. Used by one thread.
class Strategy {
 public:
  virtual ~Strategy() = default;

  // Null where each rank has whole nets.
  virtual NetDivision* division() { return nullptr; }
  // Whether every step is one step of all ranks.
  virtual bool StepsTogether() const { return true; }
  // Whether the step after `updates` updates sums gradients and losses over the ranks.
  virtual bool SumsGradients(int /*updates*/) const { return true; }
  // Whether all ranks meet after so many updates. Only there they agree on what signals ask for.
  virtual bool MeetsAfter(int /*updates*/) const { return true; }
  // Whether nothing but the updates of this rank's rule moves its weights after Start: where not,
  // the other ranks' weights do as well.
  virtual bool UpdatesMoveAll() const { return StepsTogether(); }
  // Whether no rank waits for a call of another one after Start, and each asks NextIteration how
  // far all have come. Rank 0 then tests and saves alone.
  virtual bool GoesApart() const { return false; }

  // Where the weights of the training net and the rule's state lie; null: in the device's own
  // memory. Before Prepare, and all ranks take the same blocks in the same order. Throws
  // kUnavailable.
  virtual std::pmr::memory_resource* WeightMemory(const Device& /*device*/,
                                                  SharedWindow* /*peers*/) {
    return nullptr;
  }

  // The step rule of the training net, which is made after WeightMemory was asked for.
  virtual std::unique_ptr<StepRule> MakeRule(const SolverSpec& spec, const Device& /*device*/) {
    return MakeStepRule(spec);
  }

  // Takes memory. All ranks call it at the same point, with equal weights and rule states. `seat`
  // outlives the strategy. Throws kUsage or kUnavailable where these ranks cannot do it.
  virtual void Prepare(const StrategySeat& /*seat*/) {}
  // What RankStates gave for this rank in a run of as many. Throws kBadSnapshot for what it is not.
  virtual void RestoreRank(const std::string& /*state*/) {}
  // After `updates` updates of a run that begins or goes on. All ranks call it.
  virtual void Start(int /*updates*/) {}

  // Of so many ranks those that make steps, the first ones; the others Serve.
  virtual int Workers(int ranks) const { return ranks; }
  // Of a rank that makes no steps: does what those need that make them, until they are over.
  // stops() tells whether this rank is asked to stop all.
  virtual void Serve(const std::function<bool()>& /*stops*/) {}

  // In a step, when its gradients are evaluated and no weight has changed, with what the update
  // goes by.
  virtual void BeforeUpdate(const UpdateRates& /*rates*/) {}
  // Behind a step; `updates` were done with it.
  virtual void AfterStep(int /*updates*/) {}
  // The number of the iteration behind `iter`.
  virtual int NextIteration(int iter) { return iter + 1; }
  // Of one that goes apart: what any rank asks for, of which this one asks for `own`.
  virtual RankWishes Agree(const RankWishes& own) { return own; }
  // Of one that goes apart: this rank makes no more steps, since all shall stop, or all is done.
  // Rank 0 waits for the others.
  virtual void End(bool /*stopped*/) {}

  // All is done and saved: returns when no other rank needs anything of this one. All ranks call it
  // last.
  virtual void Part() {}

  // By rank, what each must have to go on but for the weights in the files, on rank 0; elsewhere
  // nothing. Within a ConsensusScope.
  virtual std::vector<std::string> RankStates() { return {}; }
  // Bytes that RankStates has at most.
  virtual size_t StateBytes() const { return 0; }
  // What to log in the end: exchanges, bytes, staleness; or "".
  virtual std::string Describe() const { return ""; }

 private:
  friend class ConsensusScope;
  // The weights that the ranks stand for together become those of this one, until Leave.
  virtual void EnterConsensus() {}
  virtual void LeaveConsensus() {}
  int scopes_ = 0;
};

// While one lives, the rank has the weights that all ranks stand for: those that are tested and
// saved. May be nested. Ranks that do not go apart make and end it at the same point.
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

// const RegisterStrategy<Gossip> kGossip("gossip");
template <std::constructible_from<const SolverSpec&> T>
struct RegisterStrategy {
  explicit RegisterStrategy(const char* name) {
    StrategyRegistry::Get().Add(
        name, [](const SolverSpec& spec) { return std::unique_ptr<Strategy>(new T(spec)); });
  }
};

// The strategy that the solver names; for a run alone the solver's is checked, and the synchronous
// one taken. Throws kConfig at its line for an unknown name, with the nearest one, and for fields
// that it refuses.
std::unique_ptr<Strategy> MakeStrategy(const SolverSpec& spec, int ranks);

}  // namespace trainer
