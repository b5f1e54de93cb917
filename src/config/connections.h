#pragma once
// Finds the layer that produces each input of a net.

#include <map>
#include <string>
#include <vector>

#include "trainer/config/layer_spec.h"

namespace trainer {

// An output of a layer, given by the indices of the layer and of the output.
struct OutputRef {
  int layer = 0;
  int top = 0;
  auto operator<=>(const OutputRef&) const = default;
};

// The layers that a net has in one state, and all layers of its file.
struct LayersInState {
  const std::vector<LayerSpec>& layers;
  const std::vector<LayerSpec>& file;  // layers of all states
  std::string state;                   // "phase TRAIN, level 0"
};

// Returns, for each layer, the output that each of its bottoms reads. Throws kConfig, with the
// places, for a bottom that no earlier layer produces and for a top that two layers produce (other
// than in place). Several errors come as an ErrorGroup.
std::vector<std::vector<OutputRef>> Connect(const LayersInState& net);

}  // namespace trainer
