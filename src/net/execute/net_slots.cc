// The memory of each activation slot.

#include <algorithm>

#include "compile/build.h"
#include "execute/dynamic_shapes.h"

namespace trainer {

void Net::MakeSlots() {
  const CompileEnv env{options_, device_, params_};
  const bool shapes_change = std::ranges::any_of(graph_->nodes, &Node::has_dynamic_shape);
  for (int slot = 0; slot < options_.activation_slots; ++slot) {
    auto bindings = std::make_unique<Bindings>(*graph_, options_, device_);
    auto shapes =
        shapes_change ? std::make_unique<DynamicShapes>(*graph_, *bindings, env) : nullptr;
    slots_.push_back({std::move(bindings), std::move(shapes)});
  }
  SelectSlot(0);
}

void Net::SelectSlot(int slot) {
  const Slot& selected = slots_.at(static_cast<size_t>(slot));
  bindings_ = selected.bindings.get();
  dynamic_shapes_ = selected.dynamic_shapes.get();
}

Tensor Net::At(ValueId id, BufferId buffer, int activation_slot) const {
  const auto& value = graph_->values[id];
  const Bindings* bindings = bindings_;
  const DynamicShapes* shapes = dynamic_shapes_;
  if (activation_slot != kLastSlot) {
    const Slot& slot = slots_.at(static_cast<size_t>(activation_slot));
    bindings = slot.bindings.get();
    shapes = slot.dynamic_shapes.get();
  }
  return {bindings->At(buffer), value.is_dynamic ? shapes->ShapeOf(id) : value.shape, value.dtype};
}

}  // namespace trainer
