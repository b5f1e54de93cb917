#include "trainer/net/cost.h"

namespace trainer {

NodeBytes BytesMoved(const Graph& graph, int layer) {
  NodeBytes bytes;
  const Node& node = graph.nodes[NodeId(layer)];
  if (node.fused_into) return bytes;
  size_t weights = 0, gradients = 0;
  const auto add_params = [&](const Node& of) {
    for (const Param* param : of.params) {
      const auto size = static_cast<size_t>(param->count()) * sizeof(float);
      weights += size;
      if (graph.options.training && param->grad != nullptr) gradients += size;
    }
  };
  add_params(node);
  for (const NodeId fused : node.epilogue) add_params(graph.nodes[fused]);
  bool moves = node.out.empty(), input_needs_grad = false;
  for (size_t k = 0; k < node.out.size(); ++k) {
    const Value& value = graph.values[node.out[k]];
    if (!value.view_of) {
      moves = true;
      bytes.forward += value.bytes();
    }
    if (value.grad_buffer) bytes.backward += value.bytes();
    if (node.signature.out[k].kept) bytes.backward += value.bytes();
  }
  for (size_t k = 0; k < node.in.size(); ++k) {
    const Value& value = graph.values[node.in[k]];
    if (moves) bytes.forward += value.bytes();
    if (node.signature.in[k].kept) bytes.backward += value.bytes();
    if (!node.input_needs_grad[k]) continue;
    input_needs_grad = true;
    bytes.backward += value.bytes();
  }
  if (moves) bytes.forward += weights;
  bytes.backward += gradients + (input_needs_grad ? weights : 0);
  if (!node.has_backward) bytes.backward = 0;
  return bytes;
}

}  // namespace trainer
