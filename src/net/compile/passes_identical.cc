#include "trainer/net/passes_identical.h"

#include <algorithm>

#include "trainer/net/net.h"

namespace trainer {
namespace {

bool Varies(const Net& net, NodeId id) {
  const Node& node = net.graph().nodes[id];
  const bool brings_batch = node.in.empty() && node.params.empty();
  return brings_batch || node.signature.runs_on_host || node.signature.uses_random ||
         node.signature.state_bytes > 0;
}

}  // namespace

bool PassesAreIdentical(const Net& net) {
  const auto nodes = net.graph().nodes.Ids();
  return std::ranges::none_of(nodes, [&](NodeId id) { return Varies(net, id); }) &&
         std::ranges::none_of(net.params(), &Param::is_running_stat);
}

std::vector<std::string> DrawingLayers(const Net& net) {
  std::vector<std::string> names;
  for (const Node& node : net.graph().nodes) {
    if (node.signature.uses_random) names.push_back(node.spec.name());
  }
  return names;
}

}  // namespace trainer
