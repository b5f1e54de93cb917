#pragma once

#include "shared/broadcast.h"
#include "trainer/layers/layer.h"

namespace trainer {

// The array that Scale and Bias apply: its source, shape and axes.
struct BroadcastOperand {
  Shape shape;
  int axis = 0;
  bool learned = true;  // true: parameter 0; false: input 1
  Broadcast broadcast;
};

// Reads `axis` and `num_axes` of message `param` for a learned array; with two inputs the second is
// the array. Throws kConfig at the field's line for axes out of range and for an array that does
// not fit.
BroadcastOperand ReadBroadcastOperand(const SetupContext& ctx, const LayerSpec& spec,
                                      std::string_view param, int axis, int num_axes);

}  // namespace trainer
