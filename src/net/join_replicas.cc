#include "trainer/net/join_replicas.h"

#include <string>

#include "graph.h"
#include "trainer/base/text/text.h"

namespace trainer {

namespace {

// A sum on the host, in the middle of a pass, ends its being recorded.
ReplicaSum WithoutRecording(Net& net, const StepInfo& step, const ReplicaSum& replicas) {
  const std::string& name = step.spec.name();
  return {replicas.count, [&net, &name, sum = replicas.sum](std::span<float> values) {
            net.DoNotRecord(Join("layer '", name, "' sums over the ranks within each of them"));
            sum(values);
          }};
}

}  // namespace

void JoinReplicas(Net& net, const ReplicaSum& replicas) {
  for (const StepInfo& step : net.graph().steps) {
    auto* const layer = dynamic_cast<UsesReplicas*>(step.layer.get());
    if (layer == nullptr) continue;
    const std::string need = layer->WhyItNeedsThem();
    if (!step.shapes_vary) {
      layer->UseReplicas(WithoutRecording(net, step, replicas));
    } else if (!need.empty()) {
      step.spec.Fail(need +
                     ", but its input changes in size from batch to batch and may be empty on one "
                     "rank; remove synchronized, or train with one rank");
    }
  }
}

}  // namespace trainer
