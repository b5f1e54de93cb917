#include <algorithm>
#include <cmath>

#include "import/fuse.h"
#include "import/infer.h"
#include "import/layer_helpers.h"

namespace trainer {
namespace {

// Returns whether the value is a constant with one float for each element of the last axis.
bool IsLastAxisVector(const ImportGraph& graph, int value, int64_t length) {
  const Constant* const constant = graph.ConstantOf(value);
  return constant != nullptr && constant->is_float &&
         static_cast<int64_t>(constant->Count()) == length && !constant->dims.empty() &&
         constant->dims.back() == length;
}

// Moves padding with zeros before a convolution or an average into the padding of that layer.
bool FusePad(ImportGraph& graph, int index) {
  const ImportNode& pad = graph.node(index);
  if (pad.op != "Pad" || pad.Text("mode", "constant") != "constant") return false;
  const ImportNode* const reader = graph.SoleConsumerOf(pad.outputs[0]);
  if (reader == nullptr || reader->inputs[0] != pad.outputs[0]) return false;
  const bool max = reader->op == "MaxPool", mean = reader->op == "AveragePool";
  if (reader->op != "Conv" && !max && !mean) return false;
  const std::optional<float> value = pad.Input(2) >= 0 && graph.opset() >= 11
                                         ? graph.NumberOf(pad.inputs[2])
                                         : std::optional<float>(pad.Float("value", 0));
  if (!value || (max ? *value > -3e38f : *value != 0)) return false;
  const Dims pads = PadsOf(graph, pad);
  const size_t rank = pads.size() / 2;
  const bool outside = pads[0] != 0 || pads[1] != 0 || pads[rank] != 0 || pads[rank + 1] != 0;
  if (outside || std::ranges::any_of(pads, [](int64_t p) { return p < 0; })) return false;
  Dims own = reader->Ints("pads");
  if (own.empty()) own.assign(2 * (rank - 2), 0);
  const bool pads_itself = std::ranges::any_of(own, [](int64_t p) { return p != 0; });
  if (own.size() != 2 * (rank - 2) || reader->Text("auto_pad", "NOTSET") != "NOTSET" ||
      (mean && (pads_itself || reader->Int("ceil_mode", 0) != 0))) {
    return false;
  }
  for (size_t i = 0; i + 2 < rank; ++i) {
    own[i] += pads[i + 2];
    own[rank - 2 + i] += pads[rank + i + 2];
  }
  ImportNode node = *reader;
  node.inputs[0] = pad.inputs[0];
  node.SetInts("pads", own);
  if (mean) node.SetInts("count_include_pad", {1});
  graph.AddNode(std::move(node));
  return true;
}

// Replaces MatMul with a constant, and Gemm without factors and transA, by a Linear node.
bool MakeLinear(ImportGraph& graph, int index) {
  const ImportNode& product = graph.node(index);
  const bool gemm = product.op == "Gemm";
  if (!gemm && product.op != "MatMul") return false;
  const Constant* const weight = graph.ConstantOf(product.Input(1));
  if (weight == nullptr || !weight->is_float || weight->dims.size() != 2 ||
      graph.ConstantOf(product.inputs[0])) {
    return false;
  }
  const int64_t outputs = graph.DimsOf(product.outputs[0]).back();
  std::vector<int> inputs = {product.inputs[0], product.inputs[1]};
  if (gemm && (product.Int("transA", 0) != 0 || product.Float("alpha", 1) != 1)) return false;
  if (gemm && product.Input(2) >= 0) {
    if (product.Float("beta", 1) != 1) return false;
    if (!IsLastAxisVector(graph, product.inputs[2], outputs)) return false;
    inputs.push_back(product.inputs[2]);
  }
  ImportNode node = MakeReplacement(product, "Linear", inputs);
  if (gemm) node.SetInts("transposed", {product.Int("transB", 0)});
  graph.AddNode(std::move(node));
  return true;
}

// Turns a constant that is added to a Linear node or a convolution into its bias, if it has none.
bool FuseBias(ImportGraph& graph, int index) {
  const ImportNode& product = graph.node(index);
  const bool linear = product.op == "Linear";
  const bool conv = product.op == "Conv" || product.op == "ConvTranspose";
  if ((!linear && !conv) || product.Input(2) >= 0) return false;
  const ImportNode* const sum = graph.SoleConsumerOf(product.outputs[0]);
  if (sum == nullptr || sum->op != "Add") return false;
  const int other = OtherInput(*sum, product.outputs[0]);
  const Dims out = graph.DimsOf(product.outputs[0]);
  if (other < 0 || graph.ConstantOf(other) == nullptr || graph.DimsOf(sum->outputs[0]) != out) {
    return false;
  }
  CoveredAxes covered;
  const auto count = static_cast<int64_t>(graph.ConstantOf(other)->Count());
  const bool by_channel =
      conv && count == out[1] &&
      (count == 1 || (FindCoveredAxes(graph.DimsOf(other), out, false, &covered) &&
                      covered.axis == 1 && covered.dims.size() == 1));
  if (linear ? !IsLastAxisVector(graph, other, out.back()) : !by_channel) return false;
  ImportNode node = product;
  node.inputs.resize(2);
  node.inputs.push_back(other);
  node.outputs = sum->outputs;
  node.index = sum->index;
  graph.AddNode(std::move(node));
  return true;
}

// Merges x * s + b with constants of one shape into one Scale or Power layer.
bool FuseAffine(ImportGraph& graph, int index) {
  const ImportNode& product = graph.node(index);
  if (product.op != "Mul") return false;
  const ImportNode* const sum = graph.SoleConsumerOf(product.outputs[0]);
  if (sum == nullptr || sum->op != "Add") return false;
  const int offset = OtherInput(*sum, product.outputs[0]);
  const size_t at = graph.ConstantOf(product.inputs[0]) != nullptr ? 0 : 1;
  const int factor = product.inputs[at], x = product.inputs[1 - at];
  const Constant *const s = graph.ConstantOf(factor), *const b = graph.ConstantOf(offset);
  const Dims out = graph.DimsOf(sum->outputs[0]);
  if (s == nullptr || b == nullptr || graph.DimsOf(x) != out) return false;
  CoveredAxes of_s, of_b;
  if (s->Count() == 1 ? b->Count() != 1
                      : !FindCoveredAxes(s->dims, out, false, &of_s) ||
                            !FindCoveredAxes(b->dims, out, false, &of_b) ||
                            of_s.axis != of_b.axis || of_s.dims != of_b.dims) {
    return false;
  }
  graph.AddNode(MakeReplacement(*sum, "Affine", {x, factor, offset}));
  return true;
}

}  // namespace

const std::vector<FuseRule>& LinearRules() {
  static const std::vector<FuseRule> rules = {FusePad, MakeLinear, FuseBias};
  return rules;
}

// Runs after the other rules, because those read the single products and sums.
void FuseAffineNodes(ImportGraph& graph) { ApplyRule(graph, FuseAffine); }

}  // namespace trainer
