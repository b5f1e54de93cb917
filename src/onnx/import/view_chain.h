#pragma once
// Follows chains of nodes that only move numbers.

#include <optional>
#include <vector>

#include "import/import_graph.h"

namespace trainer {

// Holds one node of a chain and the output through which the chain leaves it.
struct ViewStep {
  int node = -1;
  size_t output = 0;
};

// Holds the nodes from `source` to a value, in the order in which they run. The nodes move numbers
// (Reshape, Transpose, Gather, ...) or multiply all of them by a constant number.
struct ViewChain {
  int source = -1;
  float factor = 1;  // the product of the constant numbers
  std::vector<ViewStep> steps;
};

// Returns `chain` extended by the node that computes its source; nothing if that node computes
// something else.
std::optional<ViewChain> ExtendUp(ImportGraph& graph, const ViewChain& chain);
// Returns the only node that reads `value`, as a step; nothing unless the node moves numbers.
std::optional<ViewStep> NextView(ImportGraph& graph, int value);

// Returns, for each element at the end of the chain in row-major order, the index of its element in
// the source. Returns nothing for chains of more than 2^25 numbers, or once CountTraced() returns
// false.
std::optional<Constant> TraceElements(ImportGraph& graph, const Dims& source,
                                      const std::vector<ViewStep>& steps);

}  // namespace trainer
