#pragma once
// Selects and connects the layers of a net in one state.

#include <vector>

#include "trainer/config/net_spec.h"

namespace trainer {

// Returns the layers that `state` keeps (FilterLayers), and a Split layer for every blob with
// several readers, named and ordered as in Caffe: <blob>_<producer>_<top index>_split. A reader is
// a bottom or a non-zero loss weight. The loss weight of a split blob moves to output 0 of the
// Split layer.
//
// Each bottom must have a producer before it, and each top a single producer. Throws kConfig for
// every layer of an unknown type; if there is none, for every wrong connection, with both places,
// the nearest blob name, and the layer that would produce the blob but that its rules exclude in
// this state.
std::vector<LayerSpec> ConnectedLayers(const NetSpec& net, const caffe::NetState& state);

}  // namespace trainer
