#include "trainer/net/await_batches.h"

#include "trainer/layers/awaits_batches.h"
#include "trainer/net/net.h"

namespace trainer {

void AwaitBatches(const Net& net, int passes) {
  for (const Node& node : net.graph().nodes) {
    auto* const layer = dynamic_cast<AwaitsBatches*>(node.layer.get());
    if (layer != nullptr) layer->AwaitBatches(passes);
  }
}

}  // namespace trainer
