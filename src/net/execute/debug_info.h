#pragma once

#include "trainer/net/graph.h"
#include "trainer/net/net.h"

namespace trainer {

// The lines of debug_info: the mean absolute value of every output, parameter and gradient, read
// while each node's numbers are still in their memory.
class DebugInfo {
 public:
  DebugInfo(const Graph& graph, const Device& device) : graph_(graph), device_(device) {}

  // After a node ran, with the context that it ran by.
  void Forward(NodeId node, const RunContext& run) const;
  void Backward(NodeId node, const RunContext& run) const;
  // After the backward pass: norms of all parameters and gradients.
  void Pass(const std::vector<Param*>& params) const;

 private:
  const Graph& graph_;
  const Device& device_;
};

}  // namespace trainer
