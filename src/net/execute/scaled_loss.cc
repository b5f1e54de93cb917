#include "execute/scaled_loss.h"

#include "trainer/backend/loops/map.h"

namespace trainer {
namespace {

struct SetTo {
  float weight;
  const float* factor;
  float* to;
  HD void operator()(int64_t i) const { to[i] = weight * *factor; }
};

}  // namespace

void ScaleSeedGradients(const Graph& graph, const Bindings& bindings, const Device& device,
                        const float* factor) {
  for (const Value& value : graph.values) {
    if (value.loss_weight == 0 || !value.grad_buffer) continue;
    auto* const to = reinterpret_cast<float*>(bindings.At(value.grad_buffer));
    ForEach(device, value.shape.Count(), SetTo{value.loss_weight, factor, to});
  }
}

}  // namespace trainer
