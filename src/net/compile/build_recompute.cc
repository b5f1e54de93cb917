#include <algorithm>

#include "compile/build.h"
#include "trainer/net/graph.h"

namespace trainer {
namespace {

// Whether only backward reads the output after its forward consumers.
bool IsInner(const Node& node, const Graph& graph) {
  if (node.out.size() != 1 || node.has_dynamic_shape || !node.has_backward) return false;
  if (graph.values[node.out[0]].view_of) return false;
  return std::ranges::all_of(graph.WithViews(node.out[0]), [&](ValueId id) {
    const Value& value = graph.values[id];
    return !value.persists && !value.is_output && value.loss_weight == 0;
  });
}

// Whether the file wants the output recomputed and this is cheap: the inputs are saved until the
// node's backward anyway, and no view shares the output's buffer.
bool IsWanted(const Node& node, const NetOptions& options, const Graph& graph) {
  const caffe::LayerParameter& proto = node.spec.proto();
  if (!(proto.has_recompute() ? proto.recompute() : options.recompute)) return false;
  if (options.memory == BufferReuse::kSeparate || !node.layer->Recomputes()) return false;
  return IsInner(node, graph) &&
         std::ranges::all_of(node.signature.in, &NodeSignature::Input::kept) &&
         graph.WithViews(node.out[0]).size() == 1;
}

// Returns the first backward time at which the value is read, or End(). The choices for the outputs
// of its consumers must be known.
int FirstBackwardUse(ValueId value, const Graph& graph) {
  int first = graph.End();
  const auto kept_by = [&](NodeId id) { first = std::min(first, graph.BackwardTime(id)); };
  const NodeId producer = graph.values[value].producer;
  if (graph.nodes[producer].signature.out[0].kept) kept_by(producer);
  for (const ValueId view : graph.WithViews(value)) {
    for (const NodeId reader : graph.values[view].consumers) {
      const Node& node = graph.nodes[reader];
      // This is earlier than the consumer's own backward.
      if (graph.RunsTwice(node)) first = std::min(first, *graph.values[node.out[0]].recompute_at);
      if (!node.has_backward) continue;
      for (size_t i = 0; i < node.in.size(); ++i) {
        if (node.in[i] == view && node.signature.in[i].kept) kept_by(reader);
      }
      for (size_t i = 0; i < node.out.size(); ++i) {
        if (graph.values[node.out[i]].view_of == view && node.signature.out[i].kept)
          kept_by(reader);
      }
    }
  }
  return first;
}

}  // namespace

bool CanRecompute(const Node& node, const NetOptions& options, const Graph& graph) {
  const caffe::LayerParameter& proto = node.spec.proto();
  const bool refused = proto.has_recompute() && !proto.recompute();
  return !refused && options.memory != BufferReuse::kSeparate && node.layer->RecomputesAtCost() &&
         IsInner(node, graph);
}

// Goes from the last node to the first, so that the consumers of a value are decided before it.
void PlanRecompute(const NetOptions& options, Graph& graph) {
  for (int s = graph.nodes.size(); s-- > 0;) {
    const Node& node = graph.nodes[NodeId(s)];
    if (node.out.empty()) continue;
    Value& out = graph.values[node.out[0]];
    out.recompute_at.reset();
    if (!IsWanted(node, options, graph) &&
        !(out.drop_candidate && CanRecompute(node, options, graph))) {
      continue;
    }
    const int first = FirstBackwardUse(node.out[0], graph);
    if (first < graph.End()) out.recompute_at = first;
  }
}

}  // namespace trainer
