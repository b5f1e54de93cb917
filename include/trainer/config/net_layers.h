#pragma once
// The layers that a net is made of in one state.

#include <vector>

#include "trainer/config/net_spec.h"

namespace trainer {

// InsertSplits of FilterLayers, with more to say where a bottom has no maker: which layer would
// make it, and that its include or exclude rules leave it out in this state. Layers of types that
// are not there are told first, then each connection that is wrong.
std::vector<LayerSpec> ConnectedLayers(const NetSpec& net, const caffe::NetState& state);

}  // namespace trainer
