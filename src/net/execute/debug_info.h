#pragma once

#include "trainer/net/graph.h"
#include "trainer/net/net.h"

namespace trainer {

// Writes the lines of debug_info: the mean absolute value of every output, parameter and gradient,
// read while each node's values are still in memory.
class DebugInfo {
 public:
  DebugInfo(const Graph& graph, const Device& device) : graph_(graph), device_(device) {}

  // Called after a node ran, with the context of that call.
  void Forward(NodeId node, const RunContext& run) const;
  void Backward(NodeId node, const RunContext& run) const;
  // Called after the backward pass; logs the norms of all parameters and gradients.
  void Pass(const std::vector<Param*>& params) const;

 private:
  const Graph& graph_;
  const Device& device_;
};

}  // namespace trainer
