#include <algorithm>

#include "import/fuse.h"
#include "import/infer.h"

namespace trainer {
namespace {

// Returns the first axis of the node's mean, if the mean covers all axes from there on and keeps
// them with length 1; else -1.
int MeanAxis(const ImportGraph& graph, const ImportNode* node) {
  if (node == nullptr || node->op != "ReduceMean" || node->Int("keepdims", 1) == 0) return -1;
  const std::vector<bool> reduced = ReducedAxes(graph, *node);
  const auto first = std::ranges::find(reduced, true);
  const bool last = std::find(first, reduced.end(), false) == reduced.end();
  return first == reduced.end() || !last ? -1 : static_cast<int>(first - reduced.begin());
}

// Holds the parts of y = d / sqrt(mean(d^2) + eps), where d = x - mean(x).
struct NormParts {
  ImportNode* quotient = nullptr;
  float eps = 0;
};

// Follows d through the variance to the quotient.
std::optional<NormParts> FindQuotient(ImportGraph& graph, int d, int axis) {
  for (const int reader : graph.value(d).consumers) {
    const ImportNode& square = graph.node(reader);
    const bool by_power =
        square.op == "Pow" && square.inputs[0] == d && IsNumber(graph, square.Input(1), 2);
    const bool by_product = square.op == "Mul" && square.inputs == std::vector<int>{d, d};
    if (!by_power && !by_product) continue;
    ImportNode* const mean = graph.SoleConsumerOf(square.outputs[0]);
    if (MeanAxis(graph, mean) != axis) continue;
    ImportNode* const sum = graph.SoleConsumerOf(mean->outputs[0]);
    const auto eps = ReadWithNumber(graph, sum, "Add");
    ImportNode* const root = eps ? graph.SoleConsumerOf(sum->outputs[0]) : nullptr;
    if (root == nullptr || root->op != "Sqrt") continue;
    ImportNode* const quotient = graph.SoleConsumerOf(root->outputs[0]);
    if (quotient == nullptr || quotient->op != "Div" || quotient->inputs[1] != root->outputs[0]) {
      continue;
    }
    // Some exporters subtract the mean twice, so the numerator may be a copy of d.
    const ImportNode* const own = graph.ProducerOf(d);
    const ImportNode* const numerator = graph.ProducerOf(quotient->inputs[0]);
    if (quotient->inputs[0] == d ||
        (numerator != nullptr && numerator->op == "Sub" && numerator->inputs == own->inputs)) {
      return NormParts{quotient, eps->number};
    }
  }
  return std::nullopt;
}

// Returns the constant that the only reader of `value` combines with it by `op`, and sets *reader.
// Returns -1 unless the constant has the shape `dims`, where more axes of length 1 may be in front.
int LineConstant(ImportGraph& graph, int value, const std::string& op, const Dims& dims,
                 ImportNode** reader) {
  ImportNode* const node = graph.SoleConsumerOf(value);
  if (node == nullptr || node->op != op) return -1;
  const int other = OtherInput(*node, value);
  const Constant* const constant = other < 0 ? nullptr : graph.ConstantOf(other);
  if (constant == nullptr || static_cast<int64_t>(constant->Count()) != CountOf(dims) ||
      constant->dims.size() < dims.size() ||
      !std::equal(dims.rbegin(), dims.rend(), constant->dims.rbegin())) {
    return -1;
  }
  *reader = node;
  return other;
}

bool FuseLayerNorm(ImportGraph& graph, int index) {
  const ImportNode& mean = graph.node(index);
  const int axis = MeanAxis(graph, &mean);
  if (axis < 0) return false;
  const int x = mean.inputs[0];
  const std::vector<int> readers = graph.value(mean.outputs[0]).consumers;
  for (const int reader : readers) {
    const ImportNode& difference = graph.node(reader);
    if (difference.op != "Sub" || difference.inputs != std::vector<int>{x, mean.outputs[0]}) {
      continue;
    }
    const std::optional<NormParts> parts = FindQuotient(graph, difference.outputs[0], axis);
    if (!parts) continue;
    const Dims in = graph.DimsOf(x), dims(in.begin() + axis, in.end());
    ImportNode* last = parts->quotient;
    std::vector<int> inputs = {x};
    const int scale = LineConstant(graph, last->outputs[0], "Mul", dims, &last);
    if (scale >= 0) inputs.push_back(scale);
    const int bias = scale < 0 ? -1 : LineConstant(graph, last->outputs[0], "Add", dims, &last);
    if (bias >= 0) inputs.push_back(bias);
    ImportNode node = MakeReplacement(*last, "LayerNormalization", inputs);
    node.SetInts("axis", {axis});
    node.SetFloat("epsilon", parts->eps);
    graph.AddNode(std::move(node));
    return true;
  }
  return false;
}

// Replaces GroupNorm. PyTorch writes it as an InstanceNormalization of an array (N, groups, rest),
// which is then multiplied and shifted per channel.
bool FuseGroupNorm(ImportGraph& graph, int index) {
  const ImportNode& norm = graph.node(index);
  if (norm.op != "InstanceNormalization") return false;
  const ImportNode* const to = graph.ProducerOf(norm.inputs[0]);
  ImportNode* const back = graph.SoleConsumerOf(norm.outputs[0]);
  if (to == nullptr || to->op != "Reshape" || back == nullptr || back->op != "Reshape") {
    return false;
  }
  const int x = to->inputs[0];
  const Dims in = graph.DimsOf(x), groups = graph.DimsOf(norm.inputs[0]);
  if (in.size() < 3 || groups.size() < 3 || graph.DimsOf(back->outputs[0]) != in ||
      groups[0] != in[0] || in[1] % groups[1] != 0) {
    return false;
  }
  // The InstanceNormalization must have scale 1 and bias 0, because other weights would apply per
  // group.
  for (const size_t i : {1u, 2u}) {
    const Constant* const weight = graph.ConstantOf(norm.Input(i));
    for (size_t k = 0; weight != nullptr && k < weight->Count(); ++k) {
      if (weight->At(k) != (i == 1 ? 1 : 0)) return false;
    }
    if (weight == nullptr) return false;
  }
  Dims line(in.size() - 1, 1);
  line[0] = in[1];
  ImportNode* last = back;
  const int scale = LineConstant(graph, last->outputs[0], "Mul", line, &last);
  const int bias = scale < 0 ? -1 : LineConstant(graph, last->outputs[0], "Add", line, &last);
  if (bias < 0) return false;
  ImportNode node = MakeReplacement(*last, "GroupNormalization", {x, scale, bias});
  node.SetInts("num_groups", {groups[1]});
  node.SetFloat("epsilon", norm.Float("epsilon", 1e-5f));
  graph.AddNode(std::move(node));
  return true;
}

}  // namespace

const std::vector<FuseRule>& NormRules() {
  static const std::vector<FuseRule> rules = {FuseLayerNorm, FuseGroupNorm};
  return rules;
}

}  // namespace trainer
