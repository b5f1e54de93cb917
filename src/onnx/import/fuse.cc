#include "import/fuse.h"

#include <cmath>

namespace trainer {

bool IsNumber(const ImportGraph& graph, int value, float number) {
  const std::optional<float> found = graph.NumberOf(value);
  return found && std::fabs(*found - number) <= 1e-4f * std::fabs(number);
}

int OtherInput(const ImportNode& node, int value) {
  if (node.inputs.size() != 2) return -1;
  if (node.inputs[0] == value) return node.inputs[1];
  return node.inputs[1] == value ? node.inputs[0] : -1;
}

std::optional<WithNumber> ReadWithNumber(const ImportGraph& graph, const ImportNode* node,
                                         const std::string& op) {
  if (node == nullptr || node->op != op || node->inputs.size() != 2) return std::nullopt;
  for (const size_t i : {1u, 0u}) {
    const std::optional<float> number = graph.NumberOf(node->inputs[i]);
    const bool commutes = op == "Add" || op == "Mul";
    if (number && (i == 1 || commutes)) return WithNumber{node->inputs[1 - i], *number};
  }
  return std::nullopt;
}

ImportNode MakeReplacement(const ImportNode& last, const std::string& op, std::vector<int> inputs) {
  ImportNode node;
  node.op = op;
  node.name = last.name;
  node.inputs = std::move(inputs);
  node.outputs = {last.outputs[0]};
  node.index = last.index;
  return node;
}

void ApplyRule(ImportGraph& graph, FuseRule rule) {
  const int count = static_cast<int>(graph.nodes().size());
  bool changed = false;
  for (int i = 0; i < count; ++i) changed = rule(graph, i) || changed;
  if (changed) graph.Sort();
}

void FuseNodes(ImportGraph& graph) {
  for (const FuseRule rule : LinearRules()) ApplyRule(graph, rule);
  for (const FuseRule rule : NormRules()) ApplyRule(graph, rule);
  for (const FuseRule rule : ActivationRules()) ApplyRule(graph, rule);
  FuseAttention(graph);
  FuseAffineNodes(graph);
}

}  // namespace trainer
