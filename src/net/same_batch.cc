// A forward pass on the batch of the one before.

#include "graph.h"

namespace trainer {
namespace {

// Brings a batch, or what stands for one. A Parameter layer has no inputs either, but its output
// changes with the weights.
bool IsSource(const StepInfo& step) { return step.in.empty() && step.params.empty(); }

}  // namespace

void PinBatch(Graph& graph) {
  for (const StepInfo& step : graph.steps) {
    if (!IsSource(step)) continue;
    for (const int out : step.out) graph.values[static_cast<size_t>(out)].pinned = true;
  }
}

float Net::ForwardAgain() {
  if (!options_.keeps_batch) {
    throw Error(ErrorCode::kInternal, "a second pass on one batch, by a net that keeps no batch");
  }
  CopyStates(true);
  for (RunContext& run : contexts_) run.repeats_ = true;
  for (int s = 0; s < NumLayers(); ++s) {
    if (!IsSource(graph_->steps[static_cast<size_t>(s)])) ForwardLayer(s);
    if (debug_info_) LogForward(s);
  }
  return Loss();
}

void Net::CopyStates(bool back) {
  auto* kept = static_cast<std::byte*>(kept_states_);
  for (const RunContext& run : contexts_) {
    const size_t bytes = run.State().size();
    if (bytes == 0) continue;
    const CopyDesc all = BlockCopy(1, 1, static_cast<int64_t>(bytes), 0, 0);
    if (back) {
      device_.Copy(all, kept, run.State().data());
    } else {
      device_.Copy(all, run.State().data(), kept);
    }
    kept += bytes;
  }
}

}  // namespace trainer
