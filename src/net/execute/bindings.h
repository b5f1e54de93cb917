#pragma once

#include <map>

#include "execute/pass_results.h"
#include "trainer/net/graph.h"
#include "trainer/net/net.h"

namespace trainer {

// What runs: for each call of a layer a context with its addresses, shapes and parameters. Built
// once and never changed, so that the calls of one iteration can be recorded and played again. What
// differs between passes is in DynamicShapes, and in the memory that the contexts point to.
class Bindings {
 public:
  struct NodeContexts {
    RunContext forward, backward;
  };

  // Takes the memory that `graph` planned, and writes into it what every pass reads: constants and
  // the gradients of weighted outputs. `graph` and `device` must outlive it.
  Bindings(const Graph& graph, const NetOptions& options, const Device& device);
  ~Bindings();
  Bindings(const Bindings&) = delete;
  Bindings& operator=(const Bindings&) = delete;

  const NodeContexts& Of(NodeId node) const { return contexts_[node]; }
  // For computing a value again, which its producer's Recompute does.
  const RunContext& Recompute(ValueId value) const { return recompute_.at(value); }

  // Where a buffer starts; null for none.
  std::byte* At(BufferId buffer) const;
  PassResults& results() const { return *results_; }

  // Fills what nobody reads after `time` with NaN.
  void Poison(int time) const;

 private:
  void Bind(NodeId id, const NetOptions& options);
  void BindRecompute(ValueId value);
  void BindBackward(const Node& node, RunContext& backward);
  void WriteConstants();

  const Graph& graph_;
  const Device& device_;
  std::byte* arena_ = nullptr;
  std::unique_ptr<PassResults> results_;
  IdVector<NodeId, NodeContexts> contexts_;
  std::map<ValueId, RunContext> recompute_;
};

}  // namespace trainer
