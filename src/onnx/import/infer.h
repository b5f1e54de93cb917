#pragma once
// What attributes and constant inputs say about a node, read the same way for shapes and layers.
// All functions throw by graph.Refuse for values that do not fit.

#include <vector>

#include "import/fold.h"
#include "import/import_graph.h"

namespace trainer {

// Sets the shapes of the node's outputs. Throws by graph.Refuse for an
// operator that cannot be imported, and for inputs that do not fit.
void InferDims(ImportGraph& graph, const ImportNode& node);

// Returns the part that a Slice takes of each axis of its input.
std::vector<AxisSlice> SlicesOf(const ImportGraph& graph, const ImportNode& node);
// Returns the old axes in their new order, for a Transpose.
Dims OrderOf(const ImportGraph& graph, const ImportNode& node);
// Returns the padding before each axis, followed by that after each axis.
Dims PadsOf(const ImportGraph& graph, const ImportNode& node);
// Returns the shape of the result of Resize or Upsample.
Dims ResizedDims(const ImportGraph& graph, const ImportNode& node);
// Returns the factor of Resize or Upsample for each axis, as the node gives it or as the sizes do.
std::vector<double> ResizeFactors(const ImportGraph& graph, const ImportNode& node);
// Returns which axes a Reduce or ArgMax node reduces.
std::vector<bool> ReducedAxes(const ImportGraph& graph, const ImportNode& node);

}  // namespace trainer
