// Nets that are one stage of a pipeline: activation slots and boundary tensors.

#include "compile/build.h"
#include "execute/dynamic_shapes.h"
#include "trainer/base/text/text.h"

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

void Net::MakeSlots() {
  const CompileEnv env{options_, device_, params_};
  for (int slot = 0; slot < options_.activation_slots; ++slot) {
    slot_bindings_.push_back(std::make_unique<const Bindings>(*graph_, options_, device_));
    states_.push_back(std::make_unique<DynamicShapes>(*graph_, *slot_bindings_.back(), env));
  }
  SetActivationSlot(0);
}

void Net::SetActivationSlot(int slot) {
  bindings_ = slot_bindings_.at(static_cast<size_t>(slot)).get();
  state_ = states_.at(static_cast<size_t>(slot)).get();
}

}  // namespace trainer
