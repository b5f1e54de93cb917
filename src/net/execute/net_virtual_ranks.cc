// Computes the passes of several ranks one after the other in one net.

#include "execute/state_backup.h"

namespace trainer {

// Allocates a copy of all states for each virtual rank; the buffers hold the active rank's state.
void Net::KeepPartStates() {
  for (int part = 0; part < options_.virtual_ranks && options_.virtual_ranks > 1; ++part) {
    virtual_rank_states_.push_back(std::make_unique<StateBackup>(*graph_, *bindings_, device_));
    virtual_rank_states_.back()->Save();
  }
}

void Net::ActivateVirtualRank(int part) {
  if (part == part_) return;
  if (part < 0 || part >= options_.virtual_ranks) {
    throw Error(ErrorCode::kInternal, "a part that this net does not compute");
  }
  virtual_rank_states_[static_cast<size_t>(part_)]->Save();
  part_ = part;
  virtual_rank_states_[static_cast<size_t>(part_)]->Restore();
  bindings_->results().SetRank(options_.rank.rank + part, part);
}

}  // namespace trainer
