#pragma once

#include <cstddef>

#include "trainer/net/graph.h"

namespace trainer {

// The least that a layer moves between memory and the processor: bytes of all that it reads and
// writes, each number once. Backward reads the gradients of the outputs, the kept values and, for
// the gradient of an input, the weights; it writes the gradients of inputs and parameters. Views
// and what is fused into another layer move nothing.
struct NodeBytes {
  size_t forward = 0, backward = 0;
};

NodeBytes BytesMoved(const Graph& graph, int layer);

}  // namespace trainer
