#pragma once
// Reads attributes and constant inputs of nodes, in the same way for shapes and for layers. All
// functions throw by graph.Refuse for values that do not fit.

#include <vector>

#include "import/fold.h"
#include "import/import_graph.h"

namespace trainer {

// Sets the shapes of the node's outputs. Throws by graph.Refuse for an
// operator that cannot be imported, and for inputs that do not fit.
void InferDims(ImportGraph& graph, const ImportNode& node);

// Returns which part of each axis of its input a Slice takes.
std::vector<AxisSlice> SlicesOf(const ImportGraph& graph, const ImportNode& node);
// Returns the permutation of a Transpose: the input axis for each output axis.
Dims OrderOf(const ImportGraph& graph, const ImportNode& node);
// Returns the padding before each axis, followed by the padding after each axis.
Dims PadsOf(const ImportGraph& graph, const ImportNode& node);
// Returns the shape of the result of Resize or Upsample.
Dims ResizedDims(const ImportGraph& graph, const ImportNode& node);
// Returns the factor of Resize or Upsample for each axis, given directly or computed from the
// sizes.
std::vector<double> ResizeFactors(const ImportGraph& graph, const ImportNode& node);
// Returns which axes a Reduce or ArgMax node reduces.
std::vector<bool> ReducedAxes(const ImportGraph& graph, const ImportNode& node);

}  // namespace trainer
