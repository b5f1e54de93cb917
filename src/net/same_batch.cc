// A forward pass on the batch of the one before.

#include "debug_info.h"
#include "kept_states.h"
#include "run_state.h"

namespace trainer {
namespace {

// Brings a batch, or what stands for one. A Parameter layer has no inputs either, but its output
// changes with the weights.
bool IsSource(const StepInfo& step) { return step.in.empty() && step.params().empty(); }

}  // namespace

void KeepBatch(Graph& graph) {
  for (const StepInfo& step : graph.steps) {
    if (step.fused_into || !IsSource(step)) continue;
    for (const ValueId out : step.out) graph.values[out].persists = true;
  }
}

KeptStates::KeptStates(const Graph& graph, const Program& program, const Device& device)
    : graph_(graph), program_(program), device_(device) {
  size_t bytes = 0;
  for (const StepId id : graph_.steps.Ids()) bytes += program_.Of(id).forward.State().size();
  if (bytes > 0) memory_ = static_cast<std::byte*>(device_.Allocate(bytes));
}

KeptStates::~KeptStates() {
  if (memory_ != nullptr) device_.Free(memory_);
}

void KeptStates::Copy(bool back) const {
  std::byte* kept = memory_;
  for (const StepId id : graph_.steps.Ids()) {
    const std::span<std::byte> state = program_.Of(id).forward.State();
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
  if (kept_states_ == nullptr) {
    throw Error(ErrorCode::kInternal, "a second pass on one batch, by a net that keeps no batch");
  }
  kept_states_->Restore();
  program_->exchange().Repeat();
  for (int i = 0; i < NumLayers(); ++i) {
    const StepId id(i);
    if (!IsSource(graph_->steps[id]) || graph_->steps[id].fused_into) ForwardLayer(i);
    if (debug_) DebugInfo(*graph_, device_).Forward(id, state_->Of(id).forward);
  }
}

}  // namespace trainer
