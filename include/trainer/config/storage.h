#pragma once
// The types in which a net stores its numbers: the fields *_type and *_math of nets, layers and
// solvers.

#include "trainer/config/net_spec.h"

namespace trainer {

// Returns the type in which the layer's outputs and their gradients are stored, FLOAT, FLOAT16 or
// BFLOAT16: the layer's forward_type, else the net's default_forward_type. A device that does not
// store FLOAT16 uses BFLOAT16 instead. Throws kConfig at the field's line for other types.
caffe::Type StorageOf(const NetSpec& net, const LayerSpec& layer);
// Returns the place of the field that sets this type.
SourceRef StoragePlace(const NetSpec& net, const LayerSpec& layer);

// Returns why `type` is not valid as the value of `field` (forward_type, backward_type,
// forward_math, backward_math, each also with default_ in front), or "".
std::string StorageFault(const std::string& field, caffe::Type type);

// Throws kConfig if a type of the net or of one of its layers is not valid. Logs fields that have
// no effect, but only the first place of each kind.
void CheckStorage(const NetSpec& net);

}  // namespace trainer
