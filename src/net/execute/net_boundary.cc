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
  SelectSlot(0);
}

void Net::SelectSlot(int slot) {
  bindings_ = slot_bindings_.at(static_cast<size_t>(slot)).get();
  state_ = states_.at(static_cast<size_t>(slot)).get();
}

Tensor Net::At(ValueId id, BufferId buffer, int activation_slot) const {
  const auto& value = graph_->values[id];
  if (bindings_ == nullptr) return {nullptr, value.shape, value.dtype};
  const auto slot = static_cast<size_t>(activation_slot);
  const bool last = activation_slot == kLastSlot;
  return {(last ? bindings_ : slot_bindings_.at(slot).get())->At(buffer),
          (last ? state_ : states_.at(slot).get())->ShapeOf(id), value.dtype};
}

}  // namespace trainer
