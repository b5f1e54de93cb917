#include <algorithm>

#include "compile/build.h"
#include "trainer/net/graph.h"

namespace trainer {
namespace {

// Whether a node can be fused at all: it has one output, with a fixed shape and its own buffer,
// which does not persist.
bool IsPlain(const Node& node, const Graph& graph) {
  if (node.fused_into || node.out.size() != 1 || node.has_dynamic_shape) return false;
  const Value& out = graph.values[node.out[0]];
  return !out.view_of && !out.persists && out.loss_weight == 0;
}

// Whether a value shares the gradient of a weighted output, which is written once per run and must
// not be overwritten; a fused layer overwrites the gradient of its output.
bool HasFixedGradient(ValueId value, const Graph& graph) {
  for (const ValueId v : graph.values.Ids()) {
    if (graph.values[v].view_of != value) continue;
    if (graph.values[v].loss_weight != 0 || HasFixedGradient(v, graph)) return true;
  }
  return false;
}

// Returns the only node that reads `between`, the output of node s, if it can run together with s.
NodeId FusableConsumer(NodeId s, ValueId between, const Graph& graph) {
  const Value& value = graph.values[between];
  if (value.consumers.size() != 1) return {};
  const Node& next = graph.nodes[value.consumers[0]];
  if (!IsPlain(next, graph) || next.spec.proto().propagate_down_size() > 0) return {};
  const Value& out = graph.values[next.out[0]];
  if (out.dtype != value.dtype) return {};
  if (HasFixedGradient(next.out[0], graph)) return {};
  // Its other inputs must be computed before s runs.
  const bool in_time = std::ranges::all_of(
      next.in, [&](ValueId in) { return in == between || graph.values[in].producer < s; });
  return in_time ? value.consumers[0] : NodeId();
}

// Returns the nodes that the graph allows to fuse into node s, in order; at most kMostFused.
std::vector<NodeId> FusableConsumers(NodeId s, const Graph& graph) {
  constexpr size_t kMostFused = 4;  // no layer takes more: BatchNorm takes three
  std::vector<NodeId> chain;
  if (!IsPlain(graph.nodes[s], graph)) return chain;
  ValueId between = graph.nodes[s].out[0];
  for (NodeId next = FusableConsumer(s, between, graph); next && chain.size() < kMostFused;
       next = FusableConsumer(s, between, graph)) {
    chain.push_back(next);
    between = graph.nodes[next].out[0];
  }
  return chain;
}

// Returns how many nodes of `chain` the layer and the device can fuse. Asks for the longest chain
// first, because a device may have a kernel for all of them but none for a shorter chain.
size_t CountTaken(Node& node, const std::vector<NodeId>& chain, const Device& device,
                  const Graph& graph) {
  std::vector<const LayerSpec*> next;
  for (const NodeId id : chain) next.push_back(&graph.nodes[id].spec);
  while (!next.empty() && !node.layer->Fuse(next, device)) next.pop_back();
  return next.size();
}

// Moves the inputs and the output of node `next` to node s.
void Absorb(NodeId s, NodeId next, Graph& graph) {
  Node& node = graph.nodes[s];
  Node& taken = graph.nodes[next];
  for (const ValueId in : taken.in) {
    std::vector<NodeId>& consumers = graph.values[in].consumers;
    std::erase(consumers, next);
    if (in == node.out[0]) continue;
    consumers.push_back(s);
    node.in.push_back(in);
  }
  node.out = taken.out;
  graph.values[node.out[0]].producer = s;
  node.epilogue.push_back(next);
  taken.fused_into = s;
  taken.in.clear();
  taken.out.clear();
}

}  // namespace

void FuseEpilogues(const CompileEnv& env, Graph& graph) {
  if (!env.options.fuse || env.options.memory == BufferReuse::kSeparate) return;
  for (const NodeId s : graph.nodes.Ids()) {
    std::vector<NodeId> chain = FusableConsumers(s, graph);
    chain.resize(CountTaken(graph.nodes[s], chain, env.device, graph));
    for (const NodeId next : chain) Absorb(s, next, graph);
    if (!chain.empty()) SetupAgain(s, env, graph);
  }
}

}  // namespace trainer
