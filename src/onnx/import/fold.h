#pragma once
// Computing with constants. Private to the importer.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "import/import_graph.h"

namespace trainer {

// A node whose inputs are all constants. Its functions throw by graph.Refuse.
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

// Computes the outputs of a node whose inputs are constants (null: left out). Returns nothing if
// the operator is not one of those. Throws by graph.Refuse for wrong inputs.
std::optional<std::vector<Constant>> FoldNode(const ImportGraph& graph, const ImportNode& node,
                                              std::span<const Constant* const> inputs);

// Returns how far neighbours along each axis are apart.
Dims StepsOf(const Dims& dims);
// Returns the same for an array of shape `dims` that is repeated along the axes of `wide`; 0 for
// axes along which it is repeated. `dims` must broadcast to `wide`.
Dims BroadcastSteps(const Dims& dims, const Dims& wide);
// Returns the sum of index_k * steps_k, where index_k is the position of element `index` of an
// array of shape `dims` along axis k.
int64_t Dot(const Dims& dims, const Dims& steps, int64_t index);

// The part of one axis that a Slice takes. The step of fewer than two elements is 1.
struct AxisSlice {
  int64_t start = 0, step = 1, count = 0;
};
// Returns the part for each axis of `dims`. Throws by graph.Refuse for lists that do not fit.
std::vector<AxisSlice> ReadSlices(const ImportGraph& graph, const ImportNode& node,
                                  const Dims& dims, const Dims& starts, const Dims& ends,
                                  const Dims& axes, const Dims& steps);
// Returns the lengths of the parts of a Split. Throws by graph.Refuse if they do not add up.
Dims SplitLengths(const ImportGraph& graph, const ImportNode& node, int64_t length,
                  const std::optional<Dims>& given);
// Returns the shape that a Reshape gives to `in`. Throws by graph.Refuse if it does not fit.
Dims ReshapedDims(const ImportGraph& graph, const ImportNode& node, const Dims& in,
                  const Dims& shape);
// Returns the shape without the axes of length 1 in `axes`, or without all of them.
Dims SqueezedDims(const ImportGraph& graph, const ImportNode& node, const Dims& in,
                  const std::optional<Dims>& axes);
// Returns the shape with axes of length 1 inserted at `axes` of the result.
Dims UnsqueezedDims(const ImportGraph& graph, const ImportNode& node, const Dims& in,
                    const Dims& axes);
// Returns the shape of Flatten's result: two axes.
Dims FlattenedDims(const ImportGraph& graph, const ImportNode& node, const Dims& in);
// Returns the shape to which both broadcast. Throws by graph.Refuse if there is none.
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
