#include "trainer/inference/net_inputs.h"

#include "trainer/base/text/text.h"

namespace trainer {

std::vector<InputBlob> InputBlobs(const Net& net) {
  std::vector<InputBlob> inputs;
  for (int i = 0; i < net.NumLayers(); ++i) {
    const LayerSpec& layer = net.LayerAt(i);
    if (layer.type() != "Input") continue;
    for (int top = 0; top < layer.proto().top_size(); ++top) {
      inputs.push_back({layer.proto().top(top), net.Output(i, top)});
      if (inputs.back().value.shape.Rank() > 0) continue;
      layer.Fail("top",
                 Join("input '", inputs.back().name,
                      "' has no batch axis; give it at least one dimension"),
                 top);
    }
  }
  return inputs;
}

}  // namespace trainer
