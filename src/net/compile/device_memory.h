#pragma once
// Refuses nets that need more memory than their device has.

#include "compile/build.h"
#include "trainer/net/graph.h"

namespace trainer {

// Throws an error at the layer that needs the most memory if the net, with its weights, gradients
// and the state of the update rule, needs more memory than is available: kResource, or kConfig if
// no machine has so much.
void RequireDeviceMemory(const Graph& graph, const CompileEnv& env);

}  // namespace trainer
