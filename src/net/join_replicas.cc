#include "trainer/net/join_replicas.h"

#include <string>

#include "graph.h"

namespace trainer {

void JoinReplicas(const Net& net, const ReplicaSum& replicas) {
  for (const StepInfo& step : net.graph().steps) {
    auto* const layer = dynamic_cast<UsesReplicas*>(step.layer.get());
    if (layer == nullptr) continue;
    const std::string need = layer->WhyItNeedsThem();
    if (!step.shapes_vary) {
      layer->UseReplicas(replicas);
    } else if (!need.empty()) {
      step.spec.Fail(need +
                     ", but its input changes in size from batch to batch and may be empty "
                     "on one of them; leave it out, or train with one rank");
    }
  }
}

}  // namespace trainer
