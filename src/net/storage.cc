#include "trainer/net/storage.h"

#include <algorithm>

#include "graph.h"
#include "trainer/backend/dropped_nan.h"

namespace trainer {

bool NeedsLossScale(const Net& net) {
  return std::ranges::any_of(net.graph().values, [](const ValueInfo& value) {
    return value.has_grad && value.dtype == DType::kF16;
  });
}

void LetGradientsTellOfNan(Net& net) {
  for (const StepInfo& step : net.graph().steps) {
    auto* const layer = dynamic_cast<MayDropNan*>(step.layer.get());
    const bool learns =
        step.runs_backward && !step.params().empty() && step.params()[0]->grad != nullptr;
    if (layer != nullptr && learns) layer->AllowDroppedNan();
  }
}

}  // namespace trainer
