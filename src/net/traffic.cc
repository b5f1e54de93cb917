#include "graph.h"

namespace trainer {

LayerTraffic Net::Traffic(int i) const {
  LayerTraffic bytes;
  const StepInfo& step = graph_->steps[static_cast<size_t>(i)];
  if (step.absorbed_by >= 0) return bytes;
  size_t weights = 0, gradients = 0;
  const auto add_params = [&](const StepInfo& of) {
    for (const Param* param : of.params) {
      const auto size = static_cast<size_t>(param->count()) * sizeof(float);
      weights += size;
      if (options_.training && param->grad != nullptr) gradients += size;
    }
  };
  add_params(step);
  for (const int other : step.absorbed) add_params(graph_->steps[static_cast<size_t>(other)]);
  bool moves = step.out.empty(), wants_grad = false;
  for (size_t k = 0; k < step.out.size(); ++k) {
    const ValueInfo& value = graph_->values[static_cast<size_t>(step.out[k])];
    if (value.view_of < 0) {
      moves = true;
      bytes.forward += value.bytes();
    }
    if (value.grad_block >= 0) bytes.backward += value.bytes();
    if (step.keep_out[k]) bytes.backward += value.bytes();
  }
  for (size_t k = 0; k < step.in.size(); ++k) {
    const ValueInfo& value = graph_->values[static_cast<size_t>(step.in[k])];
    if (moves) bytes.forward += value.bytes();
    if (step.keep_in[k]) bytes.backward += value.bytes();
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
