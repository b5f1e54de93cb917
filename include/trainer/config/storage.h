#pragma once
// How a net's numbers are stored: the fields *_type and *_math of nets, layers and solvers.

#include "trainer/config/net_spec.h"

namespace trainer {

// What the layer's outputs and their gradients are to be stored as, FLOAT, FLOAT16 or BFLOAT16: its
// forward_type, else the net's default_forward_type. A device that does not store FLOAT16 takes
// BFLOAT16 in its place. Throws kConfig at the field's line for other types.
caffe::Type StorageOf(const NetSpec& net, const LayerSpec& layer);
// The field that says so.
SourceRef StoragePlace(const NetSpec& net, const LayerSpec& layer);

// What is wrong with `type` as the value of `field` (forward_type, backward_type, forward_math,
// backward_math, with default_ in front or not), or "".
std::string StorageFault(const std::string& field, caffe::Type type);

// Throws kConfig for a type of the net or of one of its layers that has a fault. Logs what has no
// effect; of each kind the first place.
void CheckStorage(const NetSpec& net);

}  // namespace trainer
