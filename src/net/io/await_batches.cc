#include "trainer/net/await_batches.h"

#include "trainer/layers/awaits_batches.h"
#include "trainer/net/net.h"

namespace trainer {

void AwaitBatches(const Net& net, int passes) {
  for (int i = 0; i < net.NumLayers(); ++i) {
    auto* const layer = dynamic_cast<AwaitsBatches*>(&net.GetLayer(i));
    if (layer != nullptr) layer->AwaitBatches(passes);
  }
}

}  // namespace trainer
