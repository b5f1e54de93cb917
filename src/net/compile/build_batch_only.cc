#include <algorithm>

#include "compile/build.h"

namespace trainer {
namespace {

// A node with state must run again in a repeated pass, because its state is restored before.
bool IsOfBatch(const Node& node, const Graph& graph) {
  if (node.fused_into || node.on_grad_path) return false;
  if (node.signature.state_bytes > 0 && !node.in.empty()) return false;
  const auto changes = [](const Param* param) {
    return param->lr_mult != 0 || param->is_running_stat;
  };
  if (std::ranges::any_of(node.params, changes)) return false;
  return std::ranges::all_of(
      node.in, [&](ValueId in) { return graph.nodes[graph.values[in].producer].batch_only; });
}

}  // namespace

void MarkBatchOnlyNodes(Graph& graph) {
  for (Node& node : graph.nodes) node.batch_only = IsOfBatch(node, graph);
  for (Value& value : graph.values) {
    if (!graph.nodes[value.producer].batch_only) continue;
    const bool read_again = std::ranges::any_of(
        value.consumers, [&](NodeId reader) { return !graph.nodes[reader].batch_only; });
    value.persists = value.persists || value.is_output || read_again;
  }
}

}  // namespace trainer
