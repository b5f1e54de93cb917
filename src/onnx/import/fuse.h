#pragma once
// Finding groups of nodes that are one layer. Private to the importer.

#include <vector>

#include "import/import_graph.h"

namespace trainer {

// Replaces groups of nodes that are one layer of a net, such as the parts of GELU.
void FuseNodes(ImportGraph& graph);
// The same for self-attention, which becomes MultiHeadAttention. Part of FuseNodes.
void FuseAttention(ImportGraph& graph);

// Looks whether node `index` is part of a group, and replaces the group. Returns whether it did.
using FuseRule = bool (*)(ImportGraph& graph, int index);

// Applies the rule to each node.
void ApplyRule(ImportGraph& graph, FuseRule rule);

// Returns whether the value is a constant number close to `number`.
bool IsNumber(const ImportGraph& graph, int value, float number);
// Returns the input of a node with two inputs that is not `value`, or -1 if `value` is neither.
int OtherInput(const ImportNode& node, int value);
// Returns the value that a node computes from `value` and a constant number, and the number;
// nothing if `node` is null or is not such an `op`.
struct WithNumber {
  int value = -1;
  float number = 0;
};
std::optional<WithNumber> ReadWithNumber(const ImportGraph& graph, const ImportNode* node,
                                         const std::string& op);
// Adds a node that computes the first output of `last` from `inputs`, and takes its name and place.
ImportNode MakeReplacement(const ImportNode& last, const std::string& op, std::vector<int> inputs);

// Joins a product and a sum with constants. Called after the rules, which read such nodes.
void FuseAffineNodes(ImportGraph& graph);

// Rules, by subject.
const std::vector<FuseRule>& ActivationRules();
const std::vector<FuseRule>& NormRules();
const std::vector<FuseRule>& LinearRules();

}  // namespace trainer
