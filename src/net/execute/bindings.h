#pragma once

#include <map>

#include "execute/pass_results.h"
#include "trainer/net/graph.h"
#include "trainer/net/net.h"

namespace trainer {

// The memory of one activation slot, and for each call of a layer a context with its addresses,
// shapes and parameters. Does not change once it is built, so that the calls of an iteration can be
// captured and replayed, except that DynamicShapes sets shapes in a net that has such. Everything
// else that differs between passes is in the memory that the contexts point to.
class Bindings {
 public:
  struct NodeContexts {
    RunContext forward, backward;
  };

  // Allocates the memory that `graph` plans, and writes what every pass reads: constants and the
  // gradients of weighted outputs. `graph` and `device` must outlive the object.
  Bindings(const Graph& graph, const NetOptions& options, const Device& device);
  ~Bindings();
  Bindings(const Bindings&) = delete;
  Bindings& operator=(const Bindings&) = delete;

  const NodeContexts& Of(NodeId node) const { return contexts_[node]; }
  NodeContexts& Of(NodeId node) { return contexts_[node]; }
  // The context with which the producer's Recompute computes the value again.
  const RunContext& Recompute(ValueId value) const { return recompute_.at(value); }

  // Returns the address of a buffer; null without one.
  std::byte* At(BufferId buffer) const;
  PassResults& results() const { return *results_; }
  // The values that no layer reads, sorted by name, and the weighted outputs.
  const std::vector<NetOutput>& outputs() const { return outputs_; }
  const std::vector<NetOutput>& losses() const { return losses_; }
  // Sets the shape of `value` in outputs() and losses().
  void SetOutputShape(const Value& value, const Shape& shape);

  // Fills buffers whose last use is at `time` with NaN.
  void Poison(int time) const;

 private:
  void Bind(NodeId id, const NetOptions& options);
  void BindRecompute(ValueId value);
  void BindBackward(const Node& node, RunContext& backward);
  void WriteConstants();
  void ListOutputs();

  const Graph& graph_;
  const Device& device_;
  std::byte* arena_ = nullptr;
  std::unique_ptr<PassResults> results_;
  IdVector<NodeId, NodeContexts> contexts_;
  std::map<ValueId, RunContext> recompute_;
  std::vector<NetOutput> outputs_, losses_;
};

}  // namespace trainer
