#include <cmath>

#include "import/fuse.h"

namespace trainer {
namespace {

// Returns the node that computes value * other, if no other node reads `value`; else null.
ImportNode* MultipliedBy(ImportGraph& graph, int value, int other) {
  ImportNode* const node = graph.SoleConsumerOf(value);
  return node != nullptr && node->op == "Mul" && OtherInput(*node, value) == other ? node : nullptr;
}

// Replaces x * sigmoid(x) by SiLU, and x * hard_sigmoid(x) with the usual line by HardSwish.
bool FuseGatedInput(ImportGraph& graph, int index) {
  const ImportNode& gate = graph.node(index);
  const bool is_hard = gate.op == "HardSigmoid" &&
                       std::fabs(gate.Float("alpha", 0.2f) - 1 / 6.0f) < 1e-5f &&
                       std::fabs(gate.Float("beta", 0.5f) - 0.5f) < 1e-5f;
  if (gate.op != "Sigmoid" && !is_hard) return false;
  const int x = gate.inputs[0];
  const ImportNode* const product = MultipliedBy(graph, gate.outputs[0], x);
  if (product == nullptr) return false;
  graph.AddNode(MakeReplacement(*product, is_hard ? "HardSwish" : "SiLU", {x}));
  return true;
}

// Returns whether the node divides its first input by `number`, or multiplies by the inverse.
bool DividesBy(const ImportGraph& graph, const ImportNode* node, float number) {
  const auto quotient = ReadWithNumber(graph, node, "Div");
  if (quotient) return std::fabs(quotient->number / number - 1) < 1e-4f;
  const auto product = ReadWithNumber(graph, node, "Mul");
  return product && std::fabs(product->number * number - 1) < 1e-4f;
}

// Replaces relu6(x + 3) / 6 by HardSigmoid, and x * relu6(x + 3) / 6 by HardSwish.
bool FuseHardSigmoid(ImportGraph& graph, int index) {
  const ImportNode& clip = graph.node(index);
  if (clip.op != "Clip") return false;
  const bool cuts = clip.Has("max")
                        ? clip.Float("min", -1) == 0 && clip.Float("max", 0) == 6
                        : IsNumber(graph, clip.Input(1), 0) && IsNumber(graph, clip.Input(2), 6);
  const auto line = ReadWithNumber(graph, graph.ProducerOf(clip.inputs[0]), "Add");
  if (!cuts || !line || std::fabs(line->number - 3) > 1e-5f) return false;
  const int x = line->value;
  if (const ImportNode* product = MultipliedBy(graph, clip.outputs[0], x)) {
    const ImportNode* const last = graph.SoleConsumerOf(product->outputs[0]);
    if (!DividesBy(graph, last, 6)) return false;
    graph.AddNode(MakeReplacement(*last, "HardSwish", {x}));
    return true;
  }
  const ImportNode* const last = graph.SoleConsumerOf(clip.outputs[0]);
  if (!DividesBy(graph, last, 6)) return false;
  ImportNode node = MakeReplacement(*last, "HardSigmoid", {x});
  node.SetFloat("alpha", 1 / 6.0f);
  node.SetFloat("beta", 0.5f);
  graph.AddNode(std::move(node));
  return true;
}

// Replaces x * tanh(log(1 + e^x)) by Mish.
bool FuseMish(ImportGraph& graph, int index) {
  const ImportNode& softplus = graph.node(index);
  if (softplus.op != "Softplus") return false;
  const ImportNode* const tanh = graph.SoleConsumerOf(softplus.outputs[0]);
  if (tanh == nullptr || tanh->op != "Tanh") return false;
  const ImportNode* const product = MultipliedBy(graph, tanh->outputs[0], softplus.inputs[0]);
  if (product == nullptr) return false;
  graph.AddNode(MakeReplacement(*product, "Mish", {softplus.inputs[0]}));
  return true;
}

// Returns the node that completes GELU, x * (1 + value) / 2, whatever the order of the products;
// null if no node does.
ImportNode* FindGeluEnd(ImportGraph& graph, int value, int x) {
  ImportNode* const sum = graph.SoleConsumerOf(value);
  const auto one = ReadWithNumber(graph, sum, "Add");
  if (!one || one->number != 1) return nullptr;
  value = sum->outputs[0];
  float factor = 1;
  bool has_x = false;
  for (int products = 0; products < 3; ++products) {
    ImportNode* const next = graph.SoleConsumerOf(value);
    if (next == nullptr) return nullptr;
    if (const auto quotient = ReadWithNumber(graph, next, "Div")) {
      factor /= quotient->number;
    } else if (const auto product = ReadWithNumber(graph, next, "Mul")) {
      factor *= product->number;
    } else {
      const int other = next->op == "Mul" ? OtherInput(*next, value) : -1;
      const auto scaled = ReadWithNumber(graph, graph.ProducerOf(other), "Mul");
      if (has_x || (other != x && (!scaled || scaled->value != x))) return nullptr;
      has_x = true;
      if (other != x) factor *= scaled->number;
    }
    value = next->outputs[0];
    if (has_x && std::fabs(factor - 0.5f) < 1e-4f) return next;
  }
  return nullptr;
}

// Replaces the exact form of GELU, which begins with erf(x / sqrt(2)).
bool FuseGelu(ImportGraph& graph, int index) {
  const ImportNode& erf = graph.node(index);
  if (erf.op != "Erf") return false;
  const ImportNode* const inner = graph.ProducerOf(erf.inputs[0]);
  if (!DividesBy(graph, inner, std::sqrt(2.0f))) return false;
  const int x = graph.NumberOf(inner->inputs[1]) ? inner->inputs[0] : inner->inputs[1];
  const ImportNode* const last = FindGeluEnd(graph, erf.outputs[0], x);
  if (last == nullptr) return false;
  graph.AddNode(MakeReplacement(*last, "Gelu", {x}));
  return true;
}

// Returns whether `value` is x^3.
bool IsCube(ImportGraph& graph, int value, int x) {
  const ImportNode* const node = graph.ProducerOf(value);
  const auto power = ReadWithNumber(graph, node, "Pow");
  if (power) return power->value == x && power->number == 3;
  if (node == nullptr || node->op != "Mul") return false;
  const ImportNode* const square = graph.ProducerOf(OtherInput(*node, x));
  const auto squared = ReadWithNumber(graph, square, "Pow");
  if (squared) return squared->value == x && squared->number == 2;
  return square != nullptr && square->op == "Mul" && OtherInput(*square, x) == x;
}

// Replaces the approximate form of GELU, which begins with tanh(sqrt(2 / pi) * (x + 0.044715 *
// x^3)).
bool FuseGeluTanh(ImportGraph& graph, int index) {
  const ImportNode& tanh = graph.node(index);
  if (tanh.op != "Tanh") return false;
  const auto scaled = ReadWithNumber(graph, graph.ProducerOf(tanh.inputs[0]), "Mul");
  if (!scaled || std::fabs(scaled->number - 0.7978845608f) > 1e-4f) return false;
  const ImportNode* const sum = graph.ProducerOf(scaled->value);
  if (sum == nullptr || sum->op != "Add") return false;
  for (const size_t i : {0u, 1u}) {
    const int x = sum->inputs[i];
    const auto cubic = ReadWithNumber(graph, graph.ProducerOf(OtherInput(*sum, x)), "Mul");
    if (!cubic || std::fabs(cubic->number - 0.044715f) > 1e-5f) continue;
    if (!IsCube(graph, cubic->value, x)) continue;
    const ImportNode* const last = FindGeluEnd(graph, tanh.outputs[0], x);
    if (last == nullptr) return false;
    ImportNode node = MakeReplacement(*last, "Gelu", {x});
    node.attributes["approximate"].text = "tanh";
    graph.AddNode(std::move(node));
    return true;
  }
  return false;
}

}  // namespace

const std::vector<FuseRule>& ActivationRules() {
  static const std::vector<FuseRule> rules = {FuseHardSigmoid, FuseGatedInput, FuseMish, FuseGelu,
                                              FuseGeluTanh};
  return rules;
}

}  // namespace trainer
