#include <algorithm>

#include "graph.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Whether propagate_down lets the gradient of input i be computed: what the user wrote, else
// `inferred`.
bool Propagates(const StepInfo& step, size_t i, bool inferred) {
  const auto& flags = step.spec.proto().propagate_down();
  if (flags.empty()) return inferred;
  return flags[static_cast<int>(i)];
}

void CheckPropagateDown(const StepInfo& step) {
  const auto& flags = step.spec.proto().propagate_down();
  if (!flags.empty() && static_cast<size_t>(flags.size()) != step.in.size()) {
    step.spec.Fail("propagate_down",
                   Join("propagate_down is given ", flags.size(), " times for ", step.in.size(),
                        " bottoms; give none or one per bottom"),
                   0);
  }
  for (size_t i = 0; i < step.in.size(); ++i) {
    if (step.said.in[i].no_gradient && !flags.empty() && flags[static_cast<int>(i)]) {
      step.spec.Fail(
          "propagate_down",
          Join("bottom '", step.spec.proto().bottom(static_cast<int>(i)),
               "' cannot get a gradient from this layer: set its propagate_down to false"),
          static_cast<int>(i));
    }
  }
}

bool Learns(const StepInfo& step) {
  return std::ranges::any_of(step.params(), [](const Param* param) { return param->lr_mult != 0; });
}

// Front to back: which values depend on something that learns.
void SweepForward(bool force, Graph& graph) {
  for (StepInfo& step : graph.steps) {
    CheckPropagateDown(step);
    bool learns = force && !step.in.empty();
    learns = learns || Learns(step);
    for (const StepId fused : step.fused) learns = learns || Learns(graph.steps[fused]);
    step.wants_grad.assign(step.in.size(), false);
    for (size_t i = 0; i < step.in.size(); ++i) {
      const bool inferred = force || graph.values[step.in[i]].depends_on_learned;
      step.wants_grad[i] = !step.said.in[i].no_gradient && Propagates(step, i, inferred);
      learns = learns || step.wants_grad[i];
    }
    step.needs_backward = learns;
    for (const ValueId out : step.out) {
      graph.values[out].depends_on_learned = learns || graph.values[out].gives_gradient;
    }
  }
}

// Back to front: drop what no loss depends on.
void SweepBackward(Graph& graph) {
  for (int s = graph.steps.size(); s-- > 0;) {
    StepInfo& step = graph.steps[StepId(s)];
    int grads = 0, views = 0;
    for (const ValueId out : step.out) {
      ValueInfo& value = graph.values[out];
      value.has_grad = value.has_grad || value.loss_weight != 0 || value.gets_gradient;
      grads += value.has_grad;
      views += static_cast<bool>(value.view_of);
    }
    step.needs_backward = step.needs_backward && grads > 0;
    for (size_t i = 0; i < step.in.size(); ++i) {
      step.wants_grad[i] = step.wants_grad[i] && step.needs_backward;
      if (step.wants_grad[i]) graph.values[step.in[i]].has_grad = true;
    }
    const bool only_views = views > 0 && views == static_cast<int>(step.out.size());
    step.runs_backward = step.needs_backward && !(only_views && grads <= 1);
  }
}

}  // namespace

void PlanGradients(const NetOptions& options, Graph& graph) {
  if (!options.training) {
    for (StepInfo& step : graph.steps) step.wants_grad.assign(step.in.size(), false);
    return;
  }
  SweepForward(options.force_backward, graph);
  SweepBackward(graph);
  for (StepInfo& step : graph.steps) {
    if (step.fused_into) step.needs_backward = graph.steps[step.fused_into].needs_backward;
  }
}

}  // namespace trainer
