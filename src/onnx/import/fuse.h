#pragma once
// Finds groups of nodes that form one layer. Private to the importer.

#include <vector>

#include "import/import_graph.h"

namespace trainer {

// Replaces each group of nodes that forms one layer, such as the parts of GELU, by one node.
void FuseNodes(ImportGraph& graph);
// Replaces the nodes of self-attention by MultiHeadAttention. FuseNodes calls this.
void FuseAttention(ImportGraph& graph);

// Replaces the group of nodes that contains node `index`. Returns false if no group does.
using FuseRule = bool (*)(ImportGraph& graph, int index);

// Applies the rule to each node.
void ApplyRule(ImportGraph& graph, FuseRule rule);

// Returns whether the value is a constant number close to `number`.
bool IsNumber(const ImportGraph& graph, int value, float number);
// Returns the other input of a node with two inputs, or -1 if `value` is neither of them.
int OtherInput(const ImportNode& node, int value);
// Returns the two inputs of the node, a value and a constant number. Returns nothing if `node` is
// null or is not an `op` with such inputs.
struct WithNumber {
  int value = -1;
  float number = 0;
};
std::optional<WithNumber> ReadWithNumber(const ImportGraph& graph, const ImportNode* node,
                                         const std::string& op);
// Returns a node that computes the first output of `last` from `inputs`, with the name and the
// place of `last`. The caller adds the node to the graph.
ImportNode MakeReplacement(const ImportNode& last, const std::string& op, std::vector<int> inputs);

// Merges a product and a sum with constants into one node. Call this after the rules, because the
// rules read the single nodes.
void FuseAffineNodes(ImportGraph& graph);

// Return the rules, one list per subject.
const std::vector<FuseRule>& ActivationRules();
const std::vector<FuseRule>& NormRules();
const std::vector<FuseRule>& LinearRules();

}  // namespace trainer
