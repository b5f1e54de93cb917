#include <cfloat>
#include <cmath>
#include <optional>

#include "import/importers.h"
#include "import/layer_helpers.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Adds a layer of type `kType` without fields.
template <const char* kType>
void ImportPlain(NetBuilder& net, const ImportNode& node) {
  net.SetOutput(node, 0, net.AddUnary(node, kType, net.BlobOf(node, 0)).top);
}
constexpr char kSigmoidType[] = "Sigmoid", kTanHType[] = "TanH", kReLUType[] = "ReLU",
               kAbsValType[] = "AbsVal", kExpType[] = "Exp", kLogType[] = "Log",
               kHardSwishType[] = "HardSwish", kMishType[] = "Mish", kSiLUType[] = "SiLU";

int AddClip(NetBuilder& net, const ImportNode& node, int blob, float low, float high,
            const std::string& suffix = "") {
  const NetBuilder::NewLayer added = net.AddUnary(node, "Clip", blob, suffix);
  added.layer->mutable_clip_param()->set_min(low);
  added.layer->mutable_clip_param()->set_max(high);
  return added.top;
}

// Returns a bound of Clip, which is an attribute before opset 11 and a constant input since then.
float BoundOf(const NetBuilder& net, const ImportNode& node, const char* attribute, size_t input,
              float standard) {
  if (node.Has(attribute)) return node.Float(attribute, standard);
  if (node.Input(input) < 0) return standard;
  const std::optional<float> bound = net.graph().NumberOf(node.inputs[input]);
  if (!bound) net.graph().Refuse(node, Join("its ", attribute, " is not a constant number"));
  return *bound;
}

void ImportClip(NetBuilder& net, const ImportNode& node) {
  const int x = net.BlobOf(node, 0);
  const float low = std::max(BoundOf(net, node, "min", 1, -FLT_MAX), -FLT_MAX);
  const float high = std::min(BoundOf(net, node, "max", 2, FLT_MAX), FLT_MAX);
  const bool is_relu = low == 0 && high == FLT_MAX;
  net.SetOutput(node, 0,
                is_relu ? net.AddUnary(node, "ReLU", x).top : AddClip(net, node, x, low, high));
}

void ImportLeakyRelu(NetBuilder& net, const ImportNode& node) {
  const NetBuilder::NewLayer added = net.AddUnary(node, "ReLU", net.BlobOf(node, 0));
  added.layer->mutable_relu_param()->set_negative_slope(node.Float("alpha", 0.01f));
  net.SetOutput(node, 0, added.top);
}

void ImportPRelu(NetBuilder& net, const ImportNode& node) {
  const int x = net.BlobOf(node, 0);
  const Dims dims = net.DimsOf(x);
  const Constant* const slope = net.graph().ConstantOf(node.Input(1));
  CoveredAxes covered;
  const bool shared = slope != nullptr && slope->Count() == 1;
  if (slope == nullptr || (!shared && (!FindCoveredAxes(slope->dims, dims, false, &covered) ||
                                       covered.axis != 1 || covered.dims.size() != 1))) {
    net.graph().Refuse(node,
                       "its slope is not a constant number or one for each channel; a "
                       "PReLU layer has no others");
  }
  const NetBuilder::NewLayer added = net.AddUnary(node, "PReLU", x);
  if (shared) added.layer->mutable_prelu_param()->set_channel_shared(true);
  net.AddWeight(node, added, shared ? Dims() : covered.dims, FloatsOfConstant(*slope));
  net.SetOutput(node, 0, added.top);
}

int AddElu(NetBuilder& net, const ImportNode& node, int blob, float alpha, float lambda) {
  const NetBuilder::NewLayer added = net.AddUnary(node, "ELU", blob);
  if (alpha != 1) added.layer->mutable_elu_param()->set_alpha(alpha);
  if (lambda != 1) added.layer->mutable_elu_param()->set_lambda(lambda);
  return added.top;
}

void ImportElu(NetBuilder& net, const ImportNode& node) {
  const bool selu = node.op == "Selu";
  const float alpha = node.Float("alpha", selu ? 1.67326319217681884765625f : 1.0f);
  const float gamma = selu ? node.Float("gamma", 1.05070102214813232421875f) : 1.0f;
  net.SetOutput(node, 0, AddElu(net, node, net.BlobOf(node, 0), alpha, gamma));
}

// Computes alpha * elu(x / alpha), which is x if x > 0, else alpha * (e^(x / alpha) - 1).
void ImportCelu(NetBuilder& net, const ImportNode& node) {
  const float alpha = node.Float("alpha", 1);
  int top = net.BlobOf(node, 0);
  if (alpha != 1) top = net.Power(node, top, 1 / alpha, 0, 1, "in");
  top = AddElu(net, node, top, 1, 1);
  if (alpha != 1) top = net.Power(node, top, alpha, 0, 1, "out");
  net.SetOutput(node, 0, top);
}

void ImportHardSigmoid(NetBuilder& net, const ImportNode& node) {
  const int line = net.Power(node, net.BlobOf(node, 0), node.Float("alpha", 0.2f),
                             node.Float("beta", 0.5f), 1, "line");
  net.SetOutput(node, 0, AddClip(net, node, line, 0, 1));
}

void ImportGelu(NetBuilder& net, const ImportNode& node) {
  const NetBuilder::NewLayer added = net.AddUnary(node, "GELU", net.BlobOf(node, 0));
  if (node.Text("approximate", "none") == "tanh") {
    added.layer->mutable_gelu_param()->set_approximate(true);
  }
  net.SetOutput(node, 0, added.top);
}

void ImportSwish(NetBuilder& net, const ImportNode& node) {
  const NetBuilder::NewLayer added = net.AddUnary(node, "Swish", net.BlobOf(node, 0));
  const float beta = node.Float("alpha", 1);
  if (beta != 1) added.layer->mutable_swish_param()->set_beta(beta);
  net.SetOutput(node, 0, added.top);
}

void ImportPower(NetBuilder& net, const ImportNode& node) {
  const float scale = node.op == "Neg" ? -1.0f : 1.0f;
  const float power = node.op == "Sqrt" ? 0.5f : node.op == "Reciprocal" ? -1.0f : 1.0f;
  net.SetOutput(node, 0, net.Power(node, net.BlobOf(node, 0), scale, 0, power));
}

// Computes x / (1 + |x|).
void ImportSoftsign(NetBuilder& net, const ImportNode& node) {
  const int x = net.BlobOf(node, 0);
  const Dims dims = net.DimsOf(x);
  const int size = net.Add(node, "AbsVal", {x}, dims, "abs").top;
  const int inverse = net.Power(node, size, 1, 1, -1, "inverse");
  const NetBuilder::NewLayer added = net.Add(node, "Eltwise", {x, inverse}, dims);
  added.layer->mutable_eltwise_param()->set_operation(caffe::EltwiseParameter::PROD);
  net.SetOutput(node, 0, added.top);
}

// Computes log(1 + e^x).
void ImportSoftplus(NetBuilder& net, const ImportNode& node) {
  net.SetOutput(node, 0, net.AddUnary(node, "BNLL", net.BlobOf(node, 0)).top);
}

void ImportSoftmax(NetBuilder& net, const ImportNode& node) {
  const ImportGraph& graph = net.graph();
  int top = net.BlobOf(node, 0);
  const Dims dims = net.DimsOf(top);
  // Before opset 13, the operator treated all axes from `axis` (default 1) on as one axis.
  const bool flattens = graph.opset() < 13;
  const auto axis =
      static_cast<size_t>(AxisOf(graph, node, node.Int("axis", flattens ? 1 : -1), dims.size()));
  const bool joins = flattens && CountOf(std::span(dims).subspan(axis + 1)) != 1;
  if (joins) {
    Dims flat(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(axis));
    flat.push_back(CountOf(std::span(dims).subspan(axis)));
    top = net.Reshape(node, top, flat, "flat");
  }
  const NetBuilder::NewLayer added = net.Add(node, "Softmax", {top}, Dims(net.DimsOf(top)));
  if (axis != 1) added.layer->mutable_softmax_param()->set_axis(static_cast<int32_t>(axis));
  top = joins ? net.Reshape(node, added.top, dims, "shape") : added.top;
  if (node.op == "LogSoftmax") top = net.AddUnary(node, "Log", top, "log").top;
  net.SetOutput(node, 0, top);
}

}  // namespace

void AddActivationImporters(NodeImporters* all) {
  NodeImporters& table = *all;
  table["Relu"] = ImportPlain<kReLUType>;
  table["Sigmoid"] = ImportPlain<kSigmoidType>;
  table["Tanh"] = ImportPlain<kTanHType>;
  table["Abs"] = ImportPlain<kAbsValType>;
  table["Exp"] = ImportPlain<kExpType>;
  table["Log"] = ImportPlain<kLogType>;
  table["HardSwish"] = ImportPlain<kHardSwishType>;
  table["Mish"] = ImportPlain<kMishType>;
  table["SiLU"] = ImportPlain<kSiLUType>;
  table["Softplus"] = ImportSoftplus;
  table["Softsign"] = ImportSoftsign;
  table["Clip"] = ImportClip;
  table["LeakyRelu"] = ImportLeakyRelu;
  table["PRelu"] = ImportPRelu;
  table["Elu"] = table["Selu"] = ImportElu;
  table["Celu"] = ImportCelu;
  table["HardSigmoid"] = ImportHardSigmoid;
  table["Gelu"] = ImportGelu;
  table["Swish"] = ImportSwish;
  table["Neg"] = table["Sqrt"] = table["Reciprocal"] = ImportPower;
  table["Softmax"] = table["LogSoftmax"] = ImportSoftmax;
}

}  // namespace trainer
