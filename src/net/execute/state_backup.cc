#include "execute/state_backup.h"

namespace trainer {

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

}  // namespace trainer
