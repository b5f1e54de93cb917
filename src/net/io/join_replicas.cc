#include "trainer/net/join_replicas.h"

#include <string>

#include "trainer/base/text/text.h"
#include "trainer/net/graph.h"

namespace trainer {

namespace {

// An all-reduce by the host in the middle of a pass makes capturing that pass impossible.
AllReduceFn WithoutRecording(Net& net, const Node& node, const AllReduceFn& replicas) {
  const std::string& name = node.spec.name();
  return {replicas.count, [&net, &name, sum = replicas.sum](std::span<float> values) {
            net.DisableCapture(Join("layer '", name, "' sums over the ranks within each of them"));
            sum(values);
          }};
}

}  // namespace

void JoinReplicas(Net& net, const AllReduceFn& replicas) {
  for (const Node& node : net.graph().nodes) {
    if (!node.signature.uses_all_reduce) continue;
    const std::string need = node.signature.why_all_reduce;
    if (!node.has_dynamic_shape) {
      node.layer->UseAllReduce(WithoutRecording(net, node, replicas));
    } else if (!need.empty()) {
      node.spec.Fail(need +
                     ", but its input changes in size from batch to batch and may be empty on one "
                     "rank; remove synchronized, or train with one rank");
    }
  }
}

}  // namespace trainer
