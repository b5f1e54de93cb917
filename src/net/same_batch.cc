// A forward pass on the batch of the one before.

#include <algorithm>

#include "debug_info.h"
#include "kept_states.h"
#include "run_state.h"

namespace trainer {
namespace {

// A step whose state is put back for a repeated pass must move it on again.
bool IsOfBatch(const StepInfo& step, const Graph& graph) {
  if (step.fused_into || step.needs_backward) return false;
  if (step.said.state_bytes > 0 && !step.in.empty()) return false;
  const auto changes = [](const Param* param) { return param->lr_mult != 0 || param->averages; };
  if (std::ranges::any_of(step.params(), changes)) return false;
  return std::ranges::all_of(
      step.in, [&](ValueId in) { return graph.steps[graph.values[in].writer].of_batch; });
}

}  // namespace

void KeepBatch(Graph& graph) {
  for (StepInfo& step : graph.steps) step.of_batch = IsOfBatch(step, graph);
  for (ValueInfo& value : graph.values) {
    if (!graph.steps[value.writer].of_batch) continue;
    const bool read_again = std::ranges::any_of(
        value.readers, [&](StepId reader) { return !graph.steps[reader].of_batch; });
    value.persists = value.persists || value.is_output || read_again;
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
    if (graph_->steps[id].of_batch) continue;
    ForwardLayer(i);
    if (debug_) DebugInfo(*graph_, device_).Forward(id, state_->Of(id).forward);
  }
}

}  // namespace trainer
