#include "trainer/net/f16_gradients.h"

#include <algorithm>

#include "trainer/net/graph.h"
#include "trainer/net/net.h"

namespace trainer {

bool HasF16Gradients(const Net& net) {
  return std::ranges::any_of(net.graph().values, [](const Value& value) {
    return value.has_grad && value.dtype == DType::kF16;
  });
}

void LetGradientsTellOfNan(Net& net) {
  for (const Node& node : net.graph().nodes) {
    const bool learns =
        node.has_backward && !node.params.empty() && node.params[0]->grad != nullptr;
    if (learns) node.layer->AllowDroppedNan();
  }
}

}  // namespace trainer
