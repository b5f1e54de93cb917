#pragma once
// Chains of nodes that only move numbers.

#include <optional>
#include <vector>

#include "import/import_graph.h"

namespace trainer {

// One node of a chain and the output that the chain goes through.
struct ViewStep {
  int node = -1;
  size_t output = 0;
};

// Nodes from `source` to a value, in the order in which they run. They move numbers (Reshape,
// Transpose, Gather, ...) or multiply all of them by a constant number.
struct ViewChain {
  int source = -1;
  float factor = 1;  // the product of the constant numbers
  std::vector<ViewStep> steps;
};

// Returns the chain that ends at `value`, one node longer than `chain`; nothing if the node before
// it computes something else.
std::optional<ViewChain> ExtendUp(ImportGraph& graph, const ViewChain& chain);
// Returns the only node that reads `value`, as a step, if it moves numbers.
std::optional<ViewStep> NextView(ImportGraph& graph, int value);

// Returns which element of the source each element at the end of the chain is, in row-major order.
// Returns nothing for chains of more than 2^25 numbers, and after CountTraced() returned false.
std::optional<Constant> TraceElements(ImportGraph& graph, const Dims& source,
                                      const std::vector<ViewStep>& steps);

}  // namespace trainer
