#include <cfloat>

#include "import/importers.h"
#include "import/layer_helpers.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using Operation = caffe::EltwiseParameter;

int AddEltwise(NetBuilder& net, const ImportNode& node, const std::vector<int>& blobs,
               Operation::EltwiseOp operation, const std::vector<float>& factors = {},
               const std::string& suffix = "") {
  const NetBuilder::NewLayer added = net.Add(node, "Eltwise", blobs, net.DimsOf(blobs[0]), suffix);
  if (operation != Operation::SUM) {
    added.layer->mutable_eltwise_param()->set_operation(operation);
  }
  for (const float factor : factors) added.layer->mutable_eltwise_param()->add_coeff(factor);
  return added.top;
}

// Adds a Bias or Scale layer with two bottoms for x + s or x * s, where s covers some axes of x and
// is repeated along the others.
int AddSmall(NetBuilder& net, const ImportNode& node, const std::string& type, int x, int s,
             const CoveredAxes& covered) {
  const int small = net.Reshape(node, s, covered.dims, "axes");
  const NetBuilder::NewLayer added = net.Add(node, type, {x, small}, net.DimsOf(x));
  if (covered.axis == 1) return added.top;
  const auto axis = static_cast<int32_t>(covered.axis);
  if (type == "Scale") added.layer->mutable_scale_param()->set_axis(axis);
  if (type == "Bias") added.layer->mutable_bias_param()->set_axis(axis);
  return added.top;
}

// Computes a + b or a * b for two values of the net, and repeats one or both where needed.
int JoinTwo(NetBuilder& net, const ImportNode& node, bool product, int a, int b, const Dims& out) {
  const std::string type = product ? "Scale" : "Bias";
  if (net.DimsOf(a) != net.DimsOf(b)) {
    CoveredAxes covered;
    if (net.DimsOf(a) == out && FindCoveredAxes(net.DimsOf(b), out, true, &covered)) {
      return AddSmall(net, node, type, a, b, covered);
    }
    if (net.DimsOf(b) == out && FindCoveredAxes(net.DimsOf(a), out, true, &covered)) {
      return AddSmall(net, node, type, b, a, covered);
    }
    a = BroadcastTo(net, node, a, out, "a");
    b = BroadcastTo(net, node, b, out, "b");
  }
  return AddEltwise(net, node, {a, b}, product ? Operation::PROD : Operation::SUM);
}

// Returns the constant with f applied to each number.
template <class F>
Constant ChangeNumbers(const Constant& constant, const F& f) {
  Constant changed = MakeFloats(constant.dims, FloatsOfConstant(constant));
  for (float& value : changed.floats) value = f(value);
  return changed;
}

// Computes Add, Sub, Mul or Div with a constant input.
int JoinConstant(NetBuilder& net, const ImportNode& node, bool constant_first) {
  const ImportGraph& graph = net.graph();
  const Constant& c = *graph.ConstantOf(node.inputs[constant_first ? 0 : 1]);
  int x = net.BlobOf(node, constant_first ? 1 : 0);
  // A constant may have more axes than the value of the net.
  x = BroadcastTo(net, node, x, graph.DimsOf(node.outputs[0]));
  const auto negative = [](float v) { return -v; };
  const auto inverse = [](float v) { return 1 / v; };
  if (node.op == "Add") return AddConstantTo(net, node, x, c);
  if (node.op == "Mul") return MultiplyByConstant(net, node, x, c);
  if (node.op == "Sub" && !constant_first) {
    return AddConstantTo(net, node, x, ChangeNumbers(c, negative));
  }
  if (node.op == "Div" && !constant_first) {
    return MultiplyByConstant(net, node, x, ChangeNumbers(c, inverse));
  }
  if (node.op == "Sub") {
    if (c.Count() == 1) return net.Power(node, x, -1, FloatsOfConstant(c)[0]);
    return AddConstantTo(net, node, net.Power(node, x, -1, 0, 1, "negative"), c);
  }
  const int inverted = net.Power(node, x, 1, 0, -1, "inverse");
  if (c.Count() == 1 && c.At(0) == 1) return inverted;
  return MultiplyByConstant(net, node, inverted, c);
}

void ImportArithmetic(NetBuilder& net, const ImportNode& node) {
  const ImportGraph& graph = net.graph();
  for (const bool first : {true, false}) {
    if (graph.ConstantOf(node.inputs[first ? 0 : 1]) != nullptr) {
      return net.SetOutput(node, 0, JoinConstant(net, node, first));
    }
  }
  const Dims out = graph.DimsOf(node.outputs[0]);
  const int a = net.BlobOf(node, 0);
  int b = net.BlobOf(node, 1);
  const bool product = node.op == "Mul" || node.op == "Div";
  if (node.op == "Sub" && net.DimsOf(a) == net.DimsOf(b)) {
    return net.SetOutput(node, 0, AddEltwise(net, node, {a, b}, Operation::SUM, {1, -1}));
  }
  if (node.op == "Sub") b = net.Power(node, b, -1, 0, 1, "negative");
  if (node.op == "Div") b = net.Power(node, b, 1, 0, -1, "inverse");
  net.SetOutput(node, 0, JoinTwo(net, node, product, a, b, out));
}

// Computes x * s [+ b] with constants. FuseNodes creates this node.
void ImportAffine(NetBuilder& net, const ImportNode& node) {
  const ImportGraph& graph = net.graph();
  net.SetOutput(
      node, 0,
      MultiplyByConstant(net, node, net.BlobOf(node, 0), *graph.ConstantOf(node.inputs[1]),
                         graph.ConstantOf(node.Input(2))));
}

void ImportPow(NetBuilder& net, const ImportNode& node) {
  const ImportGraph& graph = net.graph();
  if (const std::optional<float> base = graph.NumberOf(node.Input(0)); base && *base > 0) {
    const NetBuilder::NewLayer added = net.AddUnary(node, "Exp", net.BlobOf(node, 1));
    added.layer->mutable_exp_param()->set_base(*base);
    return net.SetOutput(node, 0, added.top);
  }
  const std::optional<float> power = graph.NumberOf(node.Input(1));
  if (!power) graph.Refuse(node, "its exponent is not a constant number, as a Power layer's is");
  net.SetOutput(node, 0, net.Power(node, net.BlobOf(node, 0), 1, 0, *power));
}

// Returns the maximum or minimum of the inputs. The minimum is computed as -max(-x).
void ImportExtreme(NetBuilder& net, const ImportNode& node) {
  const ImportGraph& graph = net.graph();
  const Dims out = graph.DimsOf(node.outputs[0]);
  const bool least = node.op == "Min";
  std::vector<int> blobs;
  std::optional<float> bound;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (const std::optional<float> number = graph.NumberOf(node.inputs[i])) {
      bound = !bound ? *number : least ? std::min(*bound, *number) : std::max(*bound, *number);
    } else {
      blobs.push_back(BroadcastTo(net, node, net.BlobOf(node, i), out));
    }
  }
  if (blobs.empty()) graph.Refuse(node, "it has no input that the net computes");
  int top = blobs[0];
  if (blobs.size() > 1) {
    if (least) {
      for (int& blob : blobs) blob = net.Power(node, blob, -1, 0, 1, "negative");
    }
    top = AddEltwise(net, node, blobs, Operation::MAX, {}, least || bound ? "max" : "");
    if (least) top = net.Power(node, top, -1, 0, 1, bound ? "min" : "");
  }
  if (bound) {
    const NetBuilder::NewLayer added = net.AddUnary(node, "Clip", top);
    added.layer->mutable_clip_param()->set_min(least ? -FLT_MAX : *bound);
    added.layer->mutable_clip_param()->set_max(least ? *bound : FLT_MAX);
    top = added.top;
  }
  net.SetOutput(node, 0, top);
}

void ImportSum(NetBuilder& net, const ImportNode& node) {
  const Dims out = net.graph().DimsOf(node.outputs[0]);
  std::vector<int> blobs;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    blobs.push_back(BroadcastTo(net, node, net.BlobOf(node, i), out));
  }
  const auto share = 1 / static_cast<float>(blobs.size());
  const bool mean = node.op == "Mean" && blobs.size() > 1;
  net.SetOutput(node, 0,
                blobs.size() == 1 ? blobs[0]
                                  : AddEltwise(net, node, blobs, Operation::SUM,
                                               mean ? std::vector<float>(blobs.size(), share)
                                                    : std::vector<float>()));
}

}  // namespace

void AddArithmeticImporters(NodeImporters* all) {
  for (const char* op : {"Add", "Sub", "Mul", "Div"}) (*all)[op] = ImportArithmetic;
  (*all)["Affine"] = ImportAffine;
  (*all)["Pow"] = ImportPow;
  (*all)["Max"] = (*all)["Min"] = ImportExtreme;
  (*all)["Sum"] = (*all)["Mean"] = ImportSum;
}

}  // namespace trainer
