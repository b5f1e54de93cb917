#include <algorithm>

#include "graph.h"

namespace trainer {
namespace {

bool HasView(int value, const Graph& graph) {
  return std::ranges::any_of(graph.values,
                             [&](const ValueInfo& other) { return other.view_of == value; });
}

}  // namespace

int FirstBackwardUse(int value, const Graph& graph) {
  int first = graph.End();
  for (const int reader : graph.values[static_cast<size_t>(value)].readers) {
    const StepInfo& step = graph.steps[static_cast<size_t>(reader)];
    for (size_t i = 0; i < step.in.size() && step.runs_backward; ++i) {
      if (step.in[i] != value || !step.keep_in[i]) continue;
      first = std::min(first, graph.BackwardStep(reader));
    }
  }
  return first;
}

bool MayComputeAgain(int s, const NetOptions& options, const Graph& graph) {
  const StepInfo& step = graph.steps[static_cast<size_t>(s)];
  const caffe::LayerParameter& proto = step.spec.proto();
  const bool wanted = proto.has_recompute() ? proto.recompute() : options.recompute;
  if (!wanted || options.memory == MemoryMode::kSeparate || !step.runs_backward) return false;
  if (!step.layer->Recomputes() || step.out.size() != 1 || step.varies || step.follows) {
    return false;
  }
  const ValueInfo& out = graph.values[static_cast<size_t>(step.out[0])];
  if (out.view_of >= 0 || out.pinned || out.is_output || out.loss_weight != 0) return false;
  if (std::ranges::find(step.keep_in, false) != step.keep_in.end()) return false;
  if (HasView(step.out[0], graph)) return false;
  return FirstBackwardUse(step.out[0], graph) < graph.End();
}

}  // namespace trainer
