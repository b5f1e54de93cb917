// One net that computes the passes of several replicas one after the other.

#include "kept_states.h"

namespace trainer {

// A copy of all states for each part; memory has those of the present one.
void Net::KeepPartStates() {
  for (int part = 0; part < options_.parts && options_.parts > 1; ++part) {
    part_states_.push_back(std::make_unique<KeptStates>(*graph_, *program_, device_));
    part_states_.back()->Save();
  }
}

void Net::SetPart(int part) {
  if (part == part_) return;
  if (part < 0 || part >= options_.parts) {
    throw Error(ErrorCode::kInternal, "a part that this net does not compute");
  }
  part_states_[static_cast<size_t>(part_)]->Save();
  part_ = part;
  part_states_[static_cast<size_t>(part_)]->Restore();
  program_->exchange().SetReplica(options_.replica.rank + part, part);
}

}  // namespace trainer
