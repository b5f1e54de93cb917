#include <algorithm>

#include "compile/build.h"
#include "trainer/base/text/text.h"
#include "trainer/net/graph.h"

namespace trainer {
namespace {

// Whether propagate_down allows the gradient of input i; `inferred` if the user did not set it.
bool Propagates(const Node& node, size_t i, bool inferred) {
  const auto& flags = node.spec.proto().propagate_down();
  if (flags.empty()) return inferred;
  return flags[static_cast<int>(i)];
}

void CheckPropagateDown(const Node& node) {
  const auto& flags = node.spec.proto().propagate_down();
  if (!flags.empty() && static_cast<size_t>(flags.size()) != node.in.size()) {
    node.spec.Fail("propagate_down",
                   Join("propagate_down is given ", flags.size(), " times for ", node.in.size(),
                        " bottoms; give none or one per bottom"),
                   0);
  }
  for (size_t i = 0; i < node.in.size(); ++i) {
    if (node.signature.in[i].no_gradient && !flags.empty() && flags[static_cast<int>(i)]) {
      node.spec.Fail(
          "propagate_down",
          Join("bottom '", node.spec.proto().bottom(static_cast<int>(i)),
               "' cannot get a gradient from this layer: set its propagate_down to false"),
          static_cast<int>(i));
    }
  }
}

bool Learns(const Node& node) {
  return std::ranges::any_of(node.params, [](const Param* param) { return param->lr_mult != 0; });
}

// Forward over the nodes: marks the values that depend on something that learns.
void SweepForward(bool force, Graph& graph) {
  for (Node& node : graph.nodes) {
    CheckPropagateDown(node);
    bool learns = force && !node.in.empty();
    learns = learns || Learns(node);
    for (const NodeId fused : node.epilogue) learns = learns || Learns(graph.nodes[fused]);
    node.input_needs_grad.assign(node.in.size(), false);
    for (size_t i = 0; i < node.in.size(); ++i) {
      const bool inferred = force || graph.values[node.in[i]].requires_grad;
      node.input_needs_grad[i] = !node.signature.in[i].no_gradient && Propagates(node, i, inferred);
      learns = learns || node.input_needs_grad[i];
    }
    node.on_grad_path = learns;
    for (const ValueId out : node.out) {
      graph.values[out].requires_grad = learns || graph.values[out].grad_to_prev_stage;
    }
  }
}

// Backward over the nodes: removes gradients that no loss depends on.
void SweepBackward(Graph& graph) {
  for (int s = graph.nodes.size(); s-- > 0;) {
    Node& node = graph.nodes[NodeId(s)];
    int grads = 0, views = 0;
    for (const ValueId out : node.out) {
      Value& value = graph.values[out];
      value.has_grad = value.has_grad || value.loss_weight != 0 || value.grad_from_next_stage;
      grads += value.has_grad;
      views += static_cast<bool>(value.view_of);
    }
    node.on_grad_path = node.on_grad_path && grads > 0;
    for (size_t i = 0; i < node.in.size(); ++i) {
      node.input_needs_grad[i] = node.input_needs_grad[i] && node.on_grad_path;
      if (node.input_needs_grad[i]) graph.values[node.in[i]].has_grad = true;
    }
    const bool only_views = views > 0 && views == static_cast<int>(node.out.size());
    node.has_backward = node.on_grad_path && !(only_views && grads <= 1);
  }
}

}  // namespace

void MarkDifferentiable(const NetOptions& options, Graph& graph) {
  if (!options.training) {
    for (Node& node : graph.nodes) node.input_needs_grad.assign(node.in.size(), false);
    return;
  }
  SweepForward(options.force_backward, graph);
  SweepBackward(graph);
  for (Node& node : graph.nodes) {
    if (node.fused_into) node.on_grad_path = graph.nodes[node.fused_into].on_grad_path;
  }
}

int FinalGradNode(const Param* param, const Graph& graph) {
  int last = graph.nodes.size();
  for (const NodeId id : graph.nodes.Ids()) {
    const Node& node = graph.nodes[id];
    if (std::ranges::find(node.params, param) == node.params.end()) continue;
    const NodeId runs = node.fused_into ? node.fused_into : id;
    if (graph.nodes[runs].has_backward) last = std::min(last, runs.number);
  }
  return last;
}

void OrderGradients(Graph& graph) {
  for (Param* param : graph.new_params) param->final_grad_node = FinalGradNode(param, graph);
}

}  // namespace trainer
