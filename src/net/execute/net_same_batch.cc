// Repeats a forward pass on the same batch.

#include <algorithm>

#include "compile/build.h"
#include "execute/debug_info.h"
#include "execute/dynamic_shapes.h"
#include "execute/state_backup.h"

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

StateBackup::StateBackup(const Graph& graph, const Bindings& bindings, const Device& device)
    : graph_(graph), bindings_(bindings), device_(device) {
  size_t bytes = 0;
  for (const NodeId id : graph_.nodes.Ids()) bytes += bindings_.Of(id).forward.State().size();
  if (bytes > 0) memory_ = static_cast<std::byte*>(device_.Allocate(bytes));
}

StateBackup::~StateBackup() {
  if (memory_ != nullptr) device_.Free(memory_);
}

std::span<std::byte> StateBackup::Of(NodeId node) const {
  std::byte* kept = memory_;
  for (NodeId id(0); id < node; ++id.number) kept += bindings_.Of(id).forward.State().size();
  return {kept, bindings_.Of(node).forward.State().size()};
}

void StateBackup::Copy(bool back) const {
  std::byte* kept = memory_;
  for (const NodeId id : graph_.nodes.Ids()) {
    const std::span<std::byte> state = bindings_.Of(id).forward.State();
    if (state.empty()) continue;
    const CopyDesc all = BlockCopy(1, 1, static_cast<int64_t>(state.size()), 0, 0);
    if (back) {
      device_.Copy(all, kept, state.data());
    } else {
      device_.Copy(all, state.data(), kept);
    }
    kept += state.size();
  }
}

void Net::ComputeAgain() {
  if (state_backup_ == nullptr) {
    throw Error(ErrorCode::kInternal, "a second pass on one batch, by a net that keeps no batch");
  }
  state_backup_->Restore();
  bindings_->results().Repeat();
  for (const NodeId id : graph_->nodes.Ids()) {
    if (graph_->nodes[id].batch_only) continue;
    ForwardLayer(id.number);
    if (debug_) DebugInfo(*graph_, device_).Forward(id, bindings_->Of(id).forward);
  }
}

}  // namespace trainer
