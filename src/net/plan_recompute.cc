#include <algorithm>

#include "graph.h"

namespace trainer {
namespace {

bool HasView(ValueId value, const Graph& graph) {
  return std::ranges::any_of(graph.values,
                             [&](const ValueInfo& other) { return other.view_of == value; });
}

// Whether the file wants a step's output computed again and the layer can: the inputs are kept
// until the step's own backward, and no other value shares the output's memory.
bool MayRecompute(const StepInfo& step, const NetOptions& options, const Graph& graph) {
  const caffe::LayerParameter& proto = step.spec.proto();
  const bool wanted = proto.has_recompute() ? proto.recompute() : options.recompute;
  if (!wanted || options.memory == MemoryMode::kSeparate || !step.runs_backward) return false;
  if (!step.layer->Recomputes() || step.out.size() != 1 || step.shapes_vary) return false;
  const ValueInfo& out = graph.values[step.out[0]];
  if (out.view_of || out.persists || out.is_output || out.loss_weight != 0) return false;
  if (!std::ranges::all_of(step.said.in, &Description::Input::kept)) return false;
  return !HasView(step.out[0], graph);
}

// The first time in backward when a reader of the value needs it; End() where none does. What
// becomes of the readers' own outputs is known.
int FirstBackwardUse(ValueId value, const Graph& graph) {
  int first = graph.End();
  for (const StepId reader : graph.values[value].readers) {
    const StepInfo& step = graph.steps[reader];
    for (size_t i = 0; i < step.in.size() && step.runs_backward; ++i) {
      if (step.in[i] != value || !step.said.in[i].kept) continue;
      first = std::min(first, graph.BackwardTime(reader));
      // A reader whose output is computed again reads the value when that happens, which is before
      // the reader's own backward step.
      for (const ValueId out : step.out) {
        if (graph.values[out].recomputed_at)
          first = std::min(first, *graph.values[out].recomputed_at);
      }
    }
  }
  return first;
}

}  // namespace

// From the last step to the first, so that a value's readers are decided before it.
void PlanRecompute(const NetOptions& options, Graph& graph) {
  for (int s = graph.steps.size(); s-- > 0;) {
    const StepInfo& step = graph.steps[StepId(s)];
    if (!MayRecompute(step, options, graph)) continue;
    const int first = FirstBackwardUse(step.out[0], graph);
    if (first < graph.End()) graph.values[step.out[0]].recomputed_at = first;
  }
}

}  // namespace trainer
