#include "trainer/net/traffic.h"

#include "graph.h"

namespace trainer {

LayerTraffic TrafficOf(const Net& net, int layer) {
  const Graph& graph = net.graph();
  LayerTraffic bytes;
  const StepInfo& step = graph.steps[StepId(layer)];
  if (step.fused_into) return bytes;
  size_t weights = 0, gradients = 0;
  const auto add_params = [&](const StepInfo& of) {
    for (const Param* param : of.params()) {
      const auto size = static_cast<size_t>(param->count()) * sizeof(float);
      weights += size;
      if (net.training() && param->grad != nullptr) gradients += size;
    }
  };
  add_params(step);
  for (const StepId fused : step.fused) add_params(graph.steps[fused]);
  bool moves = step.out.empty(), wants_grad = false;
  for (size_t k = 0; k < step.out.size(); ++k) {
    const ValueInfo& value = graph.values[step.out[k]];
    if (!value.view_of) {
      moves = true;
      bytes.forward += value.bytes();
    }
    if (value.grad_block) bytes.backward += value.bytes();
    if (step.said.out[k].kept) bytes.backward += value.bytes();
  }
  for (size_t k = 0; k < step.in.size(); ++k) {
    const ValueInfo& value = graph.values[step.in[k]];
    if (moves) bytes.forward += value.bytes();
    if (step.said.in[k].kept) bytes.backward += value.bytes();
    if (!step.wants_grad[k]) continue;
    wants_grad = true;
    bytes.backward += value.bytes();
  }
  if (moves) bytes.forward += weights;
  bytes.backward += gradients + (wants_grad ? weights : 0);
  if (!step.runs_backward) bytes.backward = 0;
  return bytes;
}

}  // namespace trainer
