#include "trainer/net/states.h"

#include "program.h"
#include "trainer/base/text.h"

namespace trainer {

std::vector<LayerState> SaveLayerStates(const Net& net) {
  std::vector<LayerState> states;
  for (const StepId id : net.graph().steps.Ids()) {
    const StepInfo& step = net.graph().steps[id];
    std::string state = step.layer->SaveState();
    if (const auto memory = net.program().Of(id).forward.State(); !memory.empty()) {
      state.resize(memory.size());
      net.device().CopyToHost(state.data(), memory.data(), memory.size());
    }
    const bool of_replica = !net.program().Of(id).forward.State().empty();
    if (!state.empty()) states.push_back({step.key, std::move(state), of_replica});
  }
  return states;
}

void Restore(Net& net, uint32_t passes, const std::vector<LayerState>& states) {
  net.SetPasses(passes);
  for (const auto& [key, state, of_replica] : states) {
    for (const StepId id : net.graph().steps.Ids()) {
      const StepInfo& step = net.graph().steps[id];
      const std::span<std::byte> memory = net.program().Of(id).forward.State();
      if (step.key != key) continue;
      if (memory.empty()) {
        step.layer->RestoreState(state);
      } else if (state.size() == memory.size()) {
        net.device().CopyToDevice(memory.data(), state.data(), state.size());
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
