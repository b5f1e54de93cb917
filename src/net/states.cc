#include "trainer/net/states.h"

#include <exception>

#include "program.h"
#include "trainer/base/text/text.h"
#include "trainer/layers/writes_at_snapshots.h"

namespace trainer {
namespace {

std::string BytesOf(const Net& net, std::span<const std::byte> memory) {
  std::string bytes(memory.size(), '\0');
  net.device().CopyToHost(bytes.data(), memory.data(), memory.size());
  return bytes;
}

void SetMemory(const Net& net, const StepInfo& step, std::span<std::byte> memory,
               const std::string& bytes) {
  if (bytes.size() == memory.size()) {
    return net.device().CopyToDevice(memory.data(), bytes.data(), bytes.size());
  }
  step.spec.FailWith(ErrorCode::kBadSnapshot,
                     Join("the snapshot has ", bytes.size(),
                          " bytes for the state of this layer, but the layer needs ", memory.size(),
                          ": batch_size or num_output has changed; use the net of the snapshot"));
}

}  // namespace

std::vector<LayerState> SaveLayerStates(Net& net) {
  std::vector<LayerState> states;
  for (const StepId id : net.graph().steps.Ids()) {
    const StepInfo& step = net.graph().steps[id];
    const std::span<const std::byte> memory = net.program().Of(id).forward.State();
    LayerState state{step.key, step.layer->SaveState(), !memory.empty(), {}};
    for (int part = 0; part < net.parts() && state.of_replica; ++part) {
      net.SetPart(part);
      (part == 0 ? state.bytes : state.other_parts.emplace_back()) = BytesOf(net, memory);
    }
    if (!state.bytes.empty()) states.push_back(std::move(state));
  }
  net.SetPart(0);
  return states;
}

void Restore(Net& net, uint32_t passes, const std::vector<LayerState>& states) {
  net.SetPasses(passes);
  for (const LayerState& state : states) {
    for (const StepId id : net.graph().steps.Ids()) {
      const StepInfo& step = net.graph().steps[id];
      const std::span<std::byte> memory = net.program().Of(id).forward.State();
      if (step.key != state.layer) continue;
      if (memory.empty()) step.layer->RestoreState(state.bytes);
      for (size_t part = 0; part <= state.other_parts.size() && !memory.empty(); ++part) {
        net.SetPart(static_cast<int>(part));
        SetMemory(net, step, memory, part == 0 ? state.bytes : state.other_parts[part - 1]);
      }
    }
  }
  net.SetPart(0);
}

void WriteLayerFiles(Net& net, int iter) {
  std::exception_ptr failure;
  for (const StepId id : net.graph().steps.Ids()) {
    auto* const writer = dynamic_cast<WritesAtSnapshots*>(net.graph().steps[id].layer.get());
    if (writer == nullptr) continue;
    try {
      writer->WriteAtSnapshot(net.program().Of(id).forward, iter);
    } catch (const Error&) {
      failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace trainer
