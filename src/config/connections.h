#pragma once
// Who makes each input of a net.

#include <map>
#include <string>
#include <vector>

#include "trainer/config/layer_spec.h"

namespace trainer {

// An output of a layer: the layer's and the output's index.
struct OutputRef {
  int layer = 0;
  int top = 0;
  auto operator<=>(const OutputRef&) const = default;
};

// The layers that a net has in one state, and those of its file.
struct LayersInState {
  const std::vector<LayerSpec>& layers;
  const std::vector<LayerSpec>& file;  // of all states
  std::string state;                   // "phase TRAIN, level 0"
};

// For each layer, the output that each of its bottoms reads. Throws kConfig, naming the places: for
// a bottom that no layer before makes, a top made twice (other than in place). Several errors come
// as an ErrorGroup.
std::vector<std::vector<OutputRef>> Connect(const LayersInState& net);

}  // namespace trainer
