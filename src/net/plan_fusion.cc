#include <algorithm>

#include "graph.h"

namespace trainer {
namespace {

// Whether a step can be fused at all: it has one output, of memory of its own that may move, and of
// a shape that holds.
bool IsPlain(const StepInfo& step, const Graph& graph) {
  if (step.fused_into || step.out.size() != 1 || step.shapes_vary) return false;
  const ValueInfo& out = graph.values[step.out[0]];
  return !out.view_of && !out.persists && out.loss_weight == 0;
}

// Whether the gradient of a value is that of a weighted output, which is written once for the whole
// run: a fused layer overwrites the gradient of its output.
bool HasFixedGradient(ValueId value, const Graph& graph) {
  for (const ValueId v : graph.values.Ids()) {
    if (graph.values[v].view_of != value) continue;
    if (graph.values[v].loss_weight != 0 || HasFixedGradient(v, graph)) return true;
  }
  return false;
}

// The step that alone reads `between`, which step s would write, and that could run when s does.
StepId Follower(StepId s, ValueId between, const Graph& graph) {
  const ValueInfo& value = graph.values[between];
  if (value.readers.size() != 1) return {};
  const StepInfo& next = graph.steps[value.readers[0]];
  if (!IsPlain(next, graph) || next.spec.proto().propagate_down_size() > 0) return {};
  const ValueInfo& out = graph.values[next.out[0]];
  if (!(out.shape == value.shape) || out.dtype != value.dtype) return {};
  if (HasFixedGradient(next.out[0], graph)) return {};
  // Its other inputs must be there when s runs.
  const bool in_time = std::ranges::all_of(
      next.in, [&](ValueId in) { return in == between || graph.values[in].writer < s; });
  return in_time ? value.readers[0] : StepId();
}

// The steps that could be fused into step s as far as the graph goes, in order.
std::vector<StepId> Followers(StepId s, const Graph& graph) {
  std::vector<StepId> chain;
  if (!IsPlain(graph.steps[s], graph)) return chain;
  ValueId between = graph.steps[s].out[0];
  for (StepId next = Follower(s, between, graph); next; next = Follower(s, between, graph)) {
    chain.push_back(next);
    between = graph.steps[next].out[0];
  }
  return chain;
}

// How many of `chain` the layer and the device take. A device may have a kernel for all of them and
// none for the first ones alone, so the longest chain is asked for first.
size_t CountTaken(StepInfo& step, const std::vector<StepId>& chain, const Device& device,
                  const Graph& graph) {
  std::vector<const LayerSpec*> next;
  for (const StepId id : chain) next.push_back(&graph.steps[id].spec);
  while (!next.empty() && !step.layer->Fuse(next, device)) next.pop_back();
  return next.size();
}

// Hands what step `next` reads and writes to step s.
void Take(StepId s, StepId next, Graph& graph) {
  StepInfo& step = graph.steps[s];
  StepInfo& taken = graph.steps[next];
  for (const ValueId in : taken.in) {
    std::vector<StepId>& readers = graph.values[in].readers;
    std::erase(readers, next);
    if (in == step.out[0]) continue;
    readers.push_back(s);
    step.in.push_back(in);
  }
  step.out = taken.out;
  graph.values[step.out[0]].writer = s;
  step.fused.push_back(next);
  taken.fused_into = s;
  taken.in.clear();
  taken.out.clear();
}

}  // namespace

void FuseLayers(const BuildEnv& env, Graph& graph) {
  if (!env.options.fuse || env.options.memory == MemoryMode::kSeparate) return;
  for (const StepId s : graph.steps.Ids()) {
    std::vector<StepId> chain = Followers(s, graph);
    chain.resize(CountTaken(graph.steps[s], chain, env.device, graph));
    for (const StepId next : chain) Take(s, next, graph);
    if (!chain.empty()) DescribeAgain(s, env, graph);
  }
}

}  // namespace trainer
