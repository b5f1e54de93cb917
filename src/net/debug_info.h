#pragma once

#include "graph.h"

namespace trainer {

// The lines of debug_info: the mean absolute value of every output, parameter and gradient, read
// while each step's numbers are still in their memory.
class DebugInfo {
 public:
  DebugInfo(const Graph& graph, const Device& device) : graph_(graph), device_(device) {}

  // After a step ran, with the context that it ran by.
  void Forward(StepId step, const RunContext& run) const;
  void Backward(StepId step, const RunContext& run) const;
  // After the backward pass: norms of all parameters and gradients.
  void Pass(const std::vector<Param*>& params) const;

 private:
  const Graph& graph_;
  const Device& device_;
};

}  // namespace trainer
