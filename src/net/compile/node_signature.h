#pragma once
// Calls a layer's Setup and Prepare and records what it declares.

#include <span>
#include <vector>

#include "trainer/net/graph.h"
#include "trainer/net/net.h"

namespace trainer {

// The input shapes of a layer, in the order of its bottoms.
using InputShapes = std::vector<const Shape*>;

// Calls Setup of the node's layer. `types` are the types of the inputs. Throws what the layer
// throws, with its name and line.
NodeSignature SetupNode(const Node& node, const InputShapes& shapes, std::span<const DType> types,
                        const NetOptions& options);

// Returns the parameters that the layer declared in `signature`. Parameters that `store` does not
// have yet are added to it and to `new_params`, owned by node `number`; if `new_params` is null,
// they are returned as null. A parameter is frozen if one of its layers is. Throws kConfig if a
// shared parameter differs from its owner's.
std::vector<Param*> ParamsOf(const Node& node, const NodeSignature& signature,
                             const NetOptions& options, ParamStore& store,
                             std::vector<Param*>* new_params, int number);

// Calls Prepare of the layer for `signature`. Returns the memory needs of Setup and Prepare
// together.
MemoryNeeds PrepareNode(const Node& node, const NodeSignature& signature, const NetOptions& options,
                        const Device& device);

}  // namespace trainer
