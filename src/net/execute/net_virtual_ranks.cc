// Computes the passes of several ranks one after the other in one net.

#include "execute/state_backup.h"

namespace trainer {

// Allocates a copy of all states for each virtual rank; the buffers hold the active rank's state.
void Net::KeepVirtualRankStates() {
  for (int rank = 0; rank < options_.virtual_ranks && options_.virtual_ranks > 1; ++rank) {
    virtual_rank_states_.push_back(std::make_unique<StateBackup>(*graph_, *bindings_, device_));
    virtual_rank_states_.back()->Save();
  }
}

void Net::SelectVirtualRank(int virtual_rank) {
  if (virtual_rank == virtual_rank_) return;
  if (virtual_rank < 0 || virtual_rank >= options_.virtual_ranks) {
    throw Error(ErrorCode::kInternal, "a virtual rank that this net does not compute");
  }
  virtual_rank_states_[static_cast<size_t>(virtual_rank_)]->Save();
  virtual_rank_ = virtual_rank;
  virtual_rank_states_[static_cast<size_t>(virtual_rank_)]->Restore();
  bindings_->results().SetRank(options_.rank.rank + virtual_rank, virtual_rank);
}

std::span<std::byte> Net::StateOf(NodeId node, int virtual_rank) const {
  if (virtual_rank == virtual_rank_) return bindings_->Of(node).forward.State();
  return virtual_rank_states_.at(static_cast<size_t>(virtual_rank))->Of(node);
}

}  // namespace trainer
