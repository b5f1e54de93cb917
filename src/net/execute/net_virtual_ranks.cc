// One net that computes the passes of several replicas one after the other.

#include "execute/state_backup.h"

namespace trainer {

// A copy of all states for each part; memory has those of the present one.
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
