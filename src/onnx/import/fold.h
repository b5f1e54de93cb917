#pragma once
// Computes nodes whose inputs are constants. Private to the importer.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "import/import_graph.h"

namespace trainer {

// Describes a node whose inputs are all constants. The functions throw by graph.Refuse.
struct FoldContext {
  const ImportGraph& graph;
  const ImportNode& node;
  std::span<const Constant* const> inputs;

  const Constant& In(size_t i) const;
  const Dims& Integers(size_t i) const;
  // Refuses a result that is not possible or too large for a constant.
  void CheckDims(const Dims& dims) const;
  int Axis(int64_t axis, size_t rank) const;
};

// Computes the outputs of a node whose inputs are constants, where null means an input that is left
// out. Returns nothing if no rule computes the operator. Throws by graph.Refuse for wrong inputs.
std::optional<std::vector<Constant>> FoldNode(const ImportGraph& graph, const ImportNode& node,
                                              std::span<const Constant* const> inputs);

// Returns, for each axis, the distance between neighbouring elements.
Dims StepsOf(const Dims& dims);
// Returns the steps of an array of shape `dims` that is repeated to the shape `wide`. The step is 0
// for each axis along which the array is repeated. `dims` must broadcast to `wide`.
Dims BroadcastSteps(const Dims& dims, const Dims& wide);
// Returns the sum of index_k * steps_k, where index_k is the position of element `index` of an
// array of shape `dims` along axis k.
int64_t Dot(const Dims& dims, const Dims& steps, int64_t index);

// Describes which part of one axis a Slice takes. A part with fewer than two elements has step 1.
struct AxisSlice {
  int64_t start = 0, step = 1, count = 0;
};
// Returns the part of each axis of `dims`. Throws by graph.Refuse for lists that do not fit.
std::vector<AxisSlice> ReadSlices(const ImportGraph& graph, const ImportNode& node,
                                  const Dims& dims, const Dims& starts, const Dims& ends,
                                  const Dims& axes, const Dims& steps);
// Returns the lengths of the parts of a Split. Throws by graph.Refuse if they do not add up.
Dims SplitLengths(const ImportGraph& graph, const ImportNode& node, int64_t length,
                  const std::optional<Dims>& given);
// Returns the shape that a Reshape gives to `in`. Throws by graph.Refuse if it does not fit.
Dims ReshapedDims(const ImportGraph& graph, const ImportNode& node, const Dims& in,
                  const Dims& shape);
// Returns the shape without the axes in `axes`, which must have length 1. If `axes` is not given,
// removes all axes of length 1.
Dims SqueezedDims(const ImportGraph& graph, const ImportNode& node, const Dims& in,
                  const std::optional<Dims>& axes);
// Returns the shape with axes of length 1 inserted. `axes` counts in the result.
Dims UnsqueezedDims(const ImportGraph& graph, const ImportNode& node, const Dims& in,
                    const Dims& axes);
// Returns the two-dimensional shape that Flatten gives.
Dims FlattenedDims(const ImportGraph& graph, const ImportNode& node, const Dims& in);
// Returns the shape to which both broadcast. Throws by graph.Refuse if they do not broadcast.
Dims BroadcastDims(const ImportGraph& graph, const ImportNode& node, const Dims& a, const Dims& b);

Constant FoldTranspose(const FoldContext& c);
Constant FoldReshape(const FoldContext& c, Dims dims);
Constant FoldGather(const FoldContext& c);
Constant FoldConcat(const FoldContext& c);
Constant FoldSlice(const FoldContext& c);
std::vector<Constant> FoldSplit(const FoldContext& c);
Constant FoldExpand(const FoldContext& c, const Dims& dims);
Constant FoldTile(const FoldContext& c);

}  // namespace trainer
