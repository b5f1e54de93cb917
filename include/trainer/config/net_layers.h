#pragma once
// The layers that a net is made of in one state.

#include <vector>

#include "trainer/config/net_spec.h"

namespace trainer {

// The layers that `state` keeps (FilterLayers), and a Split layer for every blob with several
// readers, named and ordered as in Caffe: <blob>_<producer>_<top index>_split. A reader is a bottom
// or a non-zero loss weight. The loss weight of a split blob moves to output 0 of the Split layer.
//
// Each bottom must have a producer before it, and each top a single producer. Throws kConfig for
// every layer of an unknown type, else for every wrong connection, with both places, the nearest
// blob name, and the layer that would produce the blob but is left out by its rules in this state.
std::vector<LayerSpec> ConnectedLayers(const NetSpec& net, const caffe::NetState& state);

}  // namespace trainer
