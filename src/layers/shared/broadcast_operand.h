#pragma once

#include "shared/broadcast.h"
#include "trainer/layers/layer.h"

namespace trainer {

// Where Scale and Bias take the array from that they apply, and which axes it covers.
struct BroadcastOperand {
  Shape shape;
  int axis = 0;
  bool learned = true;  // parameter 0; else input 1
  Broadcast broadcast;
};

// Reads `axis` and `num_axes` of message `param` for a learned array; with two inputs the second
// is the array. Refuses, at the field's line: axes out of range, an array that does not fit.
BroadcastOperand ReadBroadcastOperand(const SetupContext& ctx, const LayerSpec& spec,
                                      std::string_view param, int axis, int num_axes);

}  // namespace trainer
