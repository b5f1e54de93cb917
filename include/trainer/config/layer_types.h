#pragma once
// Asks the module of layers, which config does not know, whether a layer type exists.

#include <vector>

#include "trainer/base/error/error_collector.h"
#include "trainer/config/layer_spec.h"

namespace trainer {

// The function throws kConfig for a layer whose type does not exist.
using TypeCheck = void (*)(const LayerSpec& spec);

// Registers the function. Called by the module that knows the types, before main() only.
void SetTypeCheck(TypeCheck check);

// Returns an error for each layer whose type does not exist; none in a program without layers.
ErrorList TypeErrors(const std::vector<LayerSpec>& layers);

}  // namespace trainer
