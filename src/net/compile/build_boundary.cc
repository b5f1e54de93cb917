#include "compile/build.h"
#include "trainer/base/error/error.h"

namespace trainer {

void ConnectBoundary(const StageBoundary& edges, Graph& graph) {
  for (const StageBoundary::BoundaryTensor& edge : edges.in) {
    for (const ValueId id : graph.values.Ids()) {
      Value& value = graph.values[id];
      const Node& producer = graph.nodes[value.producer];
      if (value.name != edge.blob || producer.spec.type() != "Input") continue;
      value.grad_to_prev_stage = edge.has_gradient;
      graph.boundary_in.push_back(id);
      break;
    }
  }
  for (const StageBoundary::BoundaryTensor& edge : edges.out) {
    const auto found = graph.latest_by_name.find(edge.blob);
    if (found == graph.latest_by_name.end()) continue;
    Value& value = graph.values[found->second];
    value.leaves_stage = true;
    value.grad_from_next_stage = edge.has_gradient;
    graph.boundary_out.push_back(found->second);
  }
  if (graph.boundary_in.size() == edges.in.size() &&
      graph.boundary_out.size() == edges.out.size()) {
    return;
  }
  throw Error(ErrorCode::kInternal, "a part of a net lacks a value at its edge");
}

}  // namespace trainer
