#pragma once

#include <map>

#include "exchange.h"
#include "graph.h"

namespace trainer {

// What runs: for each call of a layer a context with its addresses, shapes and parameters. Built
// once and never changed, so that the calls of one iteration can be recorded and played again. What
// differs between passes is in RunState, and in the memory that the contexts point to.
class Program {
 public:
  struct Contexts {
    RunContext forward, backward;
  };

  // Takes the memory that `graph` planned, and writes into it what every pass reads: constants and
  // the gradients of weighted outputs. `graph` and `device` must outlive it.
  Program(const Graph& graph, const NetOptions& options, const Device& device);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  const Contexts& Of(StepId step) const { return contexts_[step]; }
  // For computing a value again, which its writer's Recompute does.
  const RunContext& Recompute(ValueId value) const { return recompute_.at(value); }

  // Where a block starts; null for none.
  std::byte* At(BlockId block) const;
  PassExchange& exchange() const { return *exchange_; }

  // Fills what nobody reads after `time` with NaN.
  void Poison(int time) const;

 private:
  void Bind(StepId id, const NetOptions& options);
  void BindRecompute(ValueId value);
  void BindBackward(const StepInfo& step, RunContext& backward);
  void WriteConstants();

  const Graph& graph_;
  const Device& device_;
  std::byte* arena_ = nullptr;
  std::unique_ptr<PassExchange> exchange_;
  IdVector<StepId, Contexts> contexts_;
  std::map<ValueId, RunContext> recompute_;
};

}  // namespace trainer
