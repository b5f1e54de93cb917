#include <algorithm>

#include "graph.h"

namespace trainer {
namespace {

// Whether nothing but the backward pass reads the output later.
bool IsInner(const StepInfo& step, const Graph& graph) {
  if (step.out.size() != 1 || step.shapes_vary || !step.runs_backward) return false;
  if (graph.values[step.out[0]].view_of) return false;
  return std::ranges::all_of(graph.WithViews(step.out[0]), [&](ValueId id) {
    const ValueInfo& value = graph.values[id];
    return !value.persists && !value.is_output && value.loss_weight == 0;
  });
}

// Whether the file wants the output computed again and the layer can for little work: its inputs
// are kept until the step's own backward anyhow, and no other value shares the output's memory.
bool IsWanted(const StepInfo& step, const NetOptions& options, const Graph& graph) {
  const caffe::LayerParameter& proto = step.spec.proto();
  if (!(proto.has_recompute() ? proto.recompute() : options.recompute)) return false;
  if (options.memory == MemoryMode::kSeparate || !step.layer->Recomputes()) return false;
  return IsInner(step, graph) && std::ranges::all_of(step.said.in, &Description::Input::kept) &&
         graph.WithViews(step.out[0]).size() == 1;
}

// The first time in backward when the value's memory is read; End() where it is not. What becomes
// of the readers' own outputs is known.
int FirstBackwardUse(ValueId value, const Graph& graph) {
  int first = graph.End();
  const auto kept_by = [&](StepId id) { first = std::min(first, graph.BackwardTime(id)); };
  const StepId writer = graph.values[value].writer;
  if (graph.steps[writer].said.out[0].kept) kept_by(writer);
  for (const ValueId view : graph.WithViews(value)) {
    for (const StepId reader : graph.values[view].readers) {
      const StepInfo& step = graph.steps[reader];
      // Which is before the reader's own backward step.
      if (graph.RunsTwice(step)) first = std::min(first, *graph.values[step.out[0]].recomputed_at);
      if (!step.runs_backward) continue;
      for (size_t i = 0; i < step.in.size(); ++i) {
        if (step.in[i] == view && step.said.in[i].kept) kept_by(reader);
      }
      for (size_t i = 0; i < step.out.size(); ++i) {
        if (graph.values[step.out[i]].view_of == view && step.said.out[i].kept) kept_by(reader);
      }
    }
  }
  return first;
}

}  // namespace

std::vector<ValueId> Graph::WithViews(ValueId value) const {
  std::vector<ValueId> all = {value};
  for (size_t i = 0; i < all.size(); ++i) {
    for (const StepId reader : values[all[i]].readers) {
      for (const ValueId out : steps[reader].out) {
        const bool known = std::ranges::find(all, out) != all.end();
        if (values[out].view_of == all[i] && !known) all.push_back(out);
      }
    }
  }
  return all;
}

bool CanRecompute(const StepInfo& step, const NetOptions& options, const Graph& graph) {
  const caffe::LayerParameter& proto = step.spec.proto();
  const bool refused = proto.has_recompute() && !proto.recompute();
  return !refused && options.memory != MemoryMode::kSeparate && step.layer->RecomputesAtCost() &&
         IsInner(step, graph);
}

// From the last step to the first, so that a value's readers are decided before it.
void PlanRecompute(const NetOptions& options, Graph& graph) {
  for (int s = graph.steps.size(); s-- > 0;) {
    const StepInfo& step = graph.steps[StepId(s)];
    if (step.out.empty()) continue;
    ValueInfo& out = graph.values[step.out[0]];
    out.recomputed_at.reset();
    if (!IsWanted(step, options, graph) && !(out.may_drop && CanRecompute(step, options, graph))) {
      continue;
    }
    const int first = FirstBackwardUse(step.out[0], graph);
    if (first < graph.End()) out.recomputed_at = first;
  }
}

}  // namespace trainer
