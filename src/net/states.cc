// What the layers of a net remember from pass to pass, for snapshots.

#include "program.h"
#include "trainer/base/text.h"

namespace trainer {

std::vector<LayerState> Net::SaveLayerStates() const {
  std::vector<LayerState> states;
  for (const StepId id : graph_->steps.Ids()) {
    const StepInfo& step = graph_->steps[id];
    std::string state = step.layer->SaveState();
    if (const auto memory = program_->Of(id).forward.State(); !memory.empty()) {
      state.resize(memory.size());
      device_.CopyToHost(state.data(), memory.data(), memory.size());
    }
    const bool of_replica = !program_->Of(id).forward.State().empty();
    if (!state.empty()) states.push_back({step.key, std::move(state), of_replica});
  }
  return states;
}

void Net::Restore(uint32_t passes, const std::vector<LayerState>& states) {
  passes_ = passes;
  for (const auto& [key, state, of_replica] : states) {
    for (const StepId id : graph_->steps.Ids()) {
      const StepInfo& step = graph_->steps[id];
      const std::span<std::byte> memory = program_->Of(id).forward.State();
      if (step.key != key) continue;
      if (memory.empty()) {
        step.layer->RestoreState(state);
      } else if (state.size() == memory.size()) {
        device_.CopyToDevice(memory.data(), state.data(), state.size());
      } else {
        step.spec.FailWith(ErrorCode::kBadSnapshot,
                           Join("the snapshot holds ", state.size(),
                                " bytes of its state, and it "
                                "has ",
                                memory.size(), " here: another batch or num_output"));
      }
    }
  }
}

}  // namespace trainer
