#include "scaled_loss.h"

#include "trainer/backend/map.h"

namespace trainer {
namespace {

struct SetTo {
  float weight;
  const float* factor;
  float* to;
  HD void operator()(int64_t i) const { to[i] = weight * *factor; }
};

}  // namespace

void ScaleLossGradients(const Graph& graph, const Program& program, const Device& device,
                        const float* factor) {
  for (const ValueInfo& value : graph.values) {
    if (value.loss_weight == 0 || !value.grad_block) continue;
    auto* const to = reinterpret_cast<float*>(program.At(value.grad_block));
    ForEach(device, value.shape.Count(), SetTo{value.loss_weight, factor, to});
  }
}

}  // namespace trainer
