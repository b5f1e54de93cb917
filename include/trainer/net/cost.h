#pragma once

#include <cstddef>

#include "trainer/net/graph.h"

namespace trainer {

// The least number of bytes that a layer reads and writes, counting each value once. Backward reads
// the output gradients, the saved values and, for an input gradient, the weights; it writes the
// gradients of inputs and parameters. Views and fused layers move nothing.
struct NodeBytes {
  size_t forward = 0, backward = 0;
};

NodeBytes BytesMoved(const Graph& graph, int layer);

}  // namespace trainer
