#include <algorithm>

#include "graph.h"

namespace trainer {
namespace {

// Whether a step has a place of its own among the others: one output that holds still.
bool IsPlain(const StepInfo& step, const Graph& graph) {
  if (step.absorbed_by >= 0 || step.out.size() != 1 || step.varies || step.follows) return false;
  const ValueInfo& out = graph.values[static_cast<size_t>(step.out[0])];
  return out.view_of < 0 && !out.pinned && out.loss_weight == 0;
}

// Whether the gradient of a value is that of a weighted output, which is set once for the whole
// run.
bool HasFixedGradient(int value, const Graph& graph) {
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const ValueInfo& view = graph.values[v];
    if (view.view_of != value) continue;
    if (view.loss_weight != 0 || HasFixedGradient(static_cast<int>(v), graph)) return true;
  }
  return false;
}

// The step that alone reads what step s writes, and could run in its place; else -1.
int Follower(int s, const Graph& graph) {
  const StepInfo& step = graph.steps[static_cast<size_t>(s)];
  if (!IsPlain(step, graph)) return -1;
  const ValueInfo& between = graph.values[static_cast<size_t>(step.out[0])];
  if (between.readers.size() != 1) return -1;
  const int reader = between.readers[0];
  const StepInfo& next = graph.steps[static_cast<size_t>(reader)];
  if (!IsPlain(next, graph) || next.spec.proto().propagate_down_size() > 0) return -1;
  const ValueInfo& out = graph.values[static_cast<size_t>(next.out[0])];
  if (!(out.shape == between.shape) || out.dtype != between.dtype) return -1;
  if (HasFixedGradient(next.out[0], graph)) return -1;
  const bool in_time = std::ranges::all_of(next.in, [&](int in) {
    return in == step.out[0] || graph.values[static_cast<size_t>(in)].writer < s;
  });
  return in_time ? reader : -1;
}

// Hands what step `next` reads and writes to step s.
void Take(int s, int next, Graph& graph) {
  StepInfo& step = graph.steps[static_cast<size_t>(s)];
  StepInfo& taken = graph.steps[static_cast<size_t>(next)];
  for (const int in : taken.in) {
    std::vector<int>& readers = graph.values[static_cast<size_t>(in)].readers;
    std::erase(readers, next);
    if (in == step.out[0]) continue;
    readers.push_back(s);
    step.in.push_back(in);
  }
  step.out = taken.out;
  graph.values[static_cast<size_t>(step.out[0])].writer = s;
  step.absorbed.push_back(next);
  taken.absorbed_by = s;
  taken.in.clear();
  taken.out.clear();
}

}  // namespace

void FuseLayers(const NetOptions& options, const Device& device, ParamStore& params, Graph& graph) {
  if (!options.fuse || options.memory == MemoryMode::kSeparate) return;
  for (int s = 0; s < graph.NumSteps(); ++s) {
    const StepInfo& step = graph.steps[static_cast<size_t>(s)];
    for (int next = Follower(s, graph); next >= 0; next = Follower(s, graph)) {
      if (!step.layer->Absorb(graph.steps[static_cast<size_t>(next)].spec)) break;
      Take(s, next, graph);
    }
    if (!step.absorbed.empty()) PlanStep(s, options, device, params, graph);
  }
}

}  // namespace trainer
