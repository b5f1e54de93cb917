#include "own_kernels.h"

#include <vector>

#include "trainer/base/text/text.h"
#include "trainer/net/graph.h"

namespace trainer {

std::string DescribeOwnKernels(const Net& net, const Device& device) {
  if (device.kind() != DeviceKind::kCuda) return "";
  std::vector<std::string> names;
  std::string reason;
  for (const Node& node : net.graph().nodes) {
    if (node.fused_into) continue;
    const std::vector<std::string> declined = node.layer->skipped_kernels();
    if (declined.empty()) continue;
    if (names.empty()) reason = Join(node.spec.Where().ToString(), ": ", declined.front());
    names.push_back(Join("'", node.spec.name(), "'"));
  }
  if (names.empty()) return "";
  return Join(
      "these layers use the program's own kernels on the GPU, which may be 10 to 100 times ",
      "slower than those of cuDNN and cuBLAS: ", JoinList(names), "; the first one because of ",
      reason, "; 'trainer device_query' lists missing libraries, and 'trainer time --v=1' ",
      "prints all reasons");
}

}  // namespace trainer
