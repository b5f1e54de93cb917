#pragma once
// Asking the module of layers, which config does not know, whether a layer's type can be had.

#include <vector>

#include "trainer/base/error/error_collector.h"
#include "trainer/config/layer_spec.h"

namespace trainer {

// Throws kConfig for a layer whose type is not there.
using TypeCheck = void (*)(const LayerSpec& spec);

// Before main() only, by the module that knows the types.
void SetTypeCheck(TypeCheck check);

// An error for each layer of a type that is not there; none in a program without layers.
ErrorList TypeErrors(const std::vector<LayerSpec>& layers);

}  // namespace trainer
