#pragma once
// Calls a layer's Setup and Prepare and records what it declares.

#include <span>
#include <vector>

#include "trainer/net/graph.h"
#include "trainer/net/net.h"

namespace trainer {

// The input shapes of a layer, in the order of its bottoms.
using InputShapes = std::vector<const Shape*>;

// Calls Setup of the node's layer. `types`: the dtypes of the inputs. Adds parameters that the
// store does not have yet to it and to `new_params`; if that is null, all must exist. Throws what
// the layer throws, with its name and line.
NodeSignature SetupNode(const Node& node, int number, const InputShapes& shapes,
                        std::span<const DType> types, const NetOptions& options, ParamStore& params,
                        std::vector<Param*>* new_params);

// Calls Prepare of the layer for `signature`. Returns the memory needs of Setup and Prepare
// together.
MemoryNeeds PrepareNode(const Node& node, const NodeSignature& signature, const NetOptions& options,
                        const Device& device);

}  // namespace trainer
