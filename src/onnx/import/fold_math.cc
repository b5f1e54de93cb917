// Folds nodes that compute numbers from constants.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "import/fold.h"
#include "import/infer.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using Results = std::optional<std::vector<Constant>>;

Results OneResult(Constant constant) {
  std::vector<Constant> results;
  results.push_back(std::move(constant));
  return results;
}

// Converts to an integer type without undefined results for numbers that do not fit.
int64_t WholeNumber(double x) {
  if (std::isnan(x)) return 0;
  constexpr double kLargest = 9.2e18;
  return static_cast<int64_t>(std::clamp(x, -kLargest, kLargest));
}

// Applies f to each pair of elements of two arrays that broadcast to one shape. If `whole` is
// given, it computes integers without conversion to floats.
Constant Binary(const FoldContext& c, double (*f)(double, double),
                int64_t (*whole)(int64_t, int64_t), bool gives_truth) {
  const Constant &a = c.In(0), &b = c.In(1);
  const Dims dims = BroadcastDims(c.graph, c.node, a.dims, b.dims);
  c.CheckDims(dims);
  const Dims of_a = BroadcastSteps(a.dims, dims), of_b = BroadcastSteps(b.dims, dims);
  const bool is_whole = !a.is_float && !b.is_float && whole != nullptr;
  Constant y;
  y.dims = dims;
  y.is_float = !is_whole && !gives_truth && (a.is_float || b.is_float);
  const int64_t count = CountOf(dims);
  for (int64_t i = 0; i < count; ++i) {
    const auto at_a = static_cast<size_t>(Dot(dims, of_a, i));
    const auto at_b = static_cast<size_t>(Dot(dims, of_b, i));
    if (is_whole) {
      y.ints.push_back(whole(a.ints[at_a], b.ints[at_b]));
    } else if (y.is_float) {
      y.floats.push_back(static_cast<float>(f(a.At(at_a), b.At(at_b))));
    } else {
      y.ints.push_back(WholeNumber(f(a.At(at_a), b.At(at_b))));
    }
  }
  return y;
}

// Integers wrap around, as in the format's reference implementation. Unsigned arithmetic avoids
// undefined behaviour.
int64_t AddWhole(int64_t a, int64_t b) { return static_cast<int64_t>(uint64_t(a) + uint64_t(b)); }
int64_t SubWhole(int64_t a, int64_t b) { return static_cast<int64_t>(uint64_t(a) - uint64_t(b)); }
int64_t MulWhole(int64_t a, int64_t b) { return static_cast<int64_t>(uint64_t(a) * uint64_t(b)); }
int64_t DivWhole(int64_t a, int64_t b) {
  if (b == 0) return 0;
  return b == -1 ? SubWhole(0, a) : a / b;
}
int64_t ModWhole(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

struct BinaryRule {
  double (*f)(double, double);
  int64_t (*whole)(int64_t, int64_t) = nullptr;
  bool gives_truth = false;
};

const std::map<std::string, BinaryRule>& BinaryRules() {
  static const std::map<std::string, BinaryRule> rules = {
      {"Add", {[](double a, double b) { return a + b; }, AddWhole}},
      {"Sub", {[](double a, double b) { return a - b; }, SubWhole}},
      {"Mul", {[](double a, double b) { return a * b; }, MulWhole}},
      {"Div", {[](double a, double b) { return a / b; }, DivWhole}},
      {"Mod", {[](double a, double b) { return std::fmod(a, b); }, ModWhole}},
      {"Pow", {[](double a, double b) { return std::pow(a, b); }}},
      {"Min", {[](double a, double b) { return std::min(a, b); }}},
      {"Max", {[](double a, double b) { return std::max(a, b); }}},
      {"Equal", {[](double a, double b) { return a == b ? 1.0 : 0.0; }, nullptr, true}},
      {"Less", {[](double a, double b) { return a < b ? 1.0 : 0.0; }, nullptr, true}},
      {"LessOrEqual", {[](double a, double b) { return a <= b ? 1.0 : 0.0; }, nullptr, true}},
      {"Greater", {[](double a, double b) { return a > b ? 1.0 : 0.0; }, nullptr, true}},
      {"GreaterOrEqual", {[](double a, double b) { return a >= b ? 1.0 : 0.0; }, nullptr, true}},
      {"And", {[](double a, double b) { return a * b != 0 ? 1.0 : 0.0; }, nullptr, true}},
      {"Or", {[](double a, double b) { return a + b != 0 ? 1.0 : 0.0; }, nullptr, true}},
  };
  return rules;
}

using UnaryRule = double (*)(double);

const std::map<std::string, UnaryRule>& UnaryRules() {
  static const std::map<std::string, UnaryRule> rules = {
      {"Neg", [](double x) { return -x; }},
      {"Abs", [](double x) { return std::fabs(x); }},
      {"Sqrt", [](double x) { return std::sqrt(x); }},
      {"Reciprocal", [](double x) { return 1 / x; }},
      {"Exp", [](double x) { return std::exp(x); }},
      {"Log", [](double x) { return std::log(x); }},
      {"Floor", [](double x) { return std::floor(x); }},
      {"Ceil", [](double x) { return std::ceil(x); }},
      {"Round", [](double x) { return std::nearbyint(x); }},
      {"Erf", [](double x) { return std::erf(x); }},
      {"Tanh", [](double x) { return std::tanh(x); }},
      {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"Relu", [](double x) { return x > 0 ? x : 0.0; }},
      {"Not", [](double x) { return x == 0 ? 1.0 : 0.0; }},
  };
  return rules;
}

Constant Unary(const Constant& x, UnaryRule f) {
  Constant y = x;
  for (float& value : y.floats) value = static_cast<float>(f(value));
  for (int64_t& value : y.ints) value = WholeNumber(f(static_cast<double>(value)));
  return y;
}

Constant FoldCast(const FoldContext& c) {
  const Constant& x = c.In(0);
  const int64_t to = c.node.Int("to", 0);
  const bool floats = to == onnx::TensorProto::FLOAT || to == onnx::TensorProto::DOUBLE ||
                      to == onnx::TensorProto::FLOAT16 || to == onnx::TensorProto::BFLOAT16;
  if (!floats && to == onnx::TensorProto::STRING) c.graph.Refuse(c.node, "it makes a text");
  const bool truth = to == onnx::TensorProto::BOOL;
  Constant y;
  y.dims = x.dims;
  y.is_float = floats;
  for (size_t i = 0; i < x.Count(); ++i) {
    const double value = x.At(i);
    if (floats) {
      y.floats.push_back(static_cast<float>(value));
    } else {
      y.ints.push_back(truth ? value != 0 : x.is_float ? WholeNumber(value) : x.ints[i]);
    }
  }
  return y;
}

Constant FoldRange(const FoldContext& c) {
  for (const size_t i : {0u, 1u, 2u}) {
    if (c.In(i).Count() != 1) c.graph.Refuse(c.node, "its inputs must be single numbers");
  }
  const double start = c.In(0).At(0), limit = c.In(1).At(0), delta = c.In(2).At(0);
  const double count = std::ceil((limit - start) / delta);
  if (!(std::fabs(count) < 1e8)) c.graph.Refuse(c.node, "it would compute too many numbers");
  Constant y;
  y.is_float = c.In(0).is_float;
  for (int64_t i = 0; i < static_cast<int64_t>(count); ++i) {
    const double value = start + static_cast<double>(i) * delta;
    if (y.is_float) y.floats.push_back(static_cast<float>(value));
    if (!y.is_float) y.ints.push_back(WholeNumber(value));
  }
  y.dims = {static_cast<int64_t>(y.Count())};
  return y;
}

Constant FoldWhere(const FoldContext& c) {
  const Constant &test = c.In(0), &a = c.In(1), &b = c.In(2);
  const Dims dims =
      BroadcastDims(c.graph, c.node, BroadcastDims(c.graph, c.node, test.dims, a.dims), b.dims);
  c.CheckDims(dims);
  if (a.is_float != b.is_float) c.graph.Refuse(c.node, "its inputs have different types");
  Constant both = a;
  both.floats.insert(both.floats.end(), b.floats.begin(), b.floats.end());
  both.ints.insert(both.ints.end(), b.ints.begin(), b.ints.end());
  const Dims of_test = BroadcastSteps(test.dims, dims);
  const Dims of_a = BroadcastSteps(a.dims, dims), of_b = BroadcastSteps(b.dims, dims);
  const auto second = static_cast<int64_t>(a.Count());
  return SelectElements(both, dims, [&](int64_t i) {
    const bool first = test.At(static_cast<size_t>(Dot(dims, of_test, i))) != 0;
    return first ? Dot(dims, of_a, i) : second + Dot(dims, of_b, i);
  });
}

// Reduces axes of a constant.
Constant FoldReduce(const FoldContext& c) {
  const Constant& x = c.In(0);
  const std::vector<bool> reduced = ReducedAxes(c.graph, c.node);
  Dims kept = x.dims, dims;
  for (size_t i = 0; i < kept.size(); ++i) {
    if (reduced[i]) kept[i] = 1;
    if (!reduced[i] || c.node.Int("keepdims", 1) != 0) dims.push_back(kept[i]);
  }
  c.CheckDims(kept);
  const Dims steps = BroadcastSteps(kept, x.dims);
  const std::string& op = c.node.op;
  const double start = op == "ReduceProd"  ? 1
                       : op == "ReduceMax" ? -std::numeric_limits<double>::infinity()
                       : op == "ReduceMin" ? std::numeric_limits<double>::infinity()
                                           : 0;
  std::vector<double> sums(static_cast<size_t>(CountOf(kept)), start);
  for (size_t i = 0; i < x.Count(); ++i) {
    double& sum = sums[static_cast<size_t>(Dot(x.dims, steps, static_cast<int64_t>(i)))];
    const double value = x.At(i);
    sum = op == "ReduceProd"  ? sum * value
          : op == "ReduceMax" ? std::max(sum, value)
          : op == "ReduceMin" ? std::min(sum, value)
                              : sum + value;
  }
  const double count = sums.empty() ? 1 : static_cast<double>(x.Count() / sums.size());
  Constant y;
  y.dims = dims;
  y.is_float = x.is_float;
  for (const double sum : sums) {
    const double value = op == "ReduceMean" ? sum / count : sum;
    if (y.is_float) y.floats.push_back(static_cast<float>(value));
    if (!y.is_float) y.ints.push_back(WholeNumber(value));
  }
  return y;
}

Constant FoldConstantNode(const FoldContext& c) {
  const auto& attributes = c.node.attributes;
  const auto count = [](const auto& list) { return Dims{static_cast<int64_t>(list.size())}; };
  for (const auto& [name, attribute] : attributes) {
    if (name == "value" && attribute.tensor != nullptr) return *attribute.tensor;
    if (name == "value_float") return MakeFloats({}, {c.node.Float(name, 0)});
    if (name == "value_int") return MakeInts({}, {c.node.Int(name, 0)});
    if (name == "value_floats") return MakeFloats(count(attribute.floats), attribute.floats);
    if (name == "value_ints") return MakeInts(count(attribute.ints), attribute.ints);
  }
  c.graph.Refuse(c.node, "its value is missing, a text or sparse; only numbers can be imported");
}

Constant FoldConstantOfShape(const FoldContext& c) {
  const Dims& dims = c.Integers(0);
  c.CheckDims(dims);
  const auto found = c.node.attributes.find("value");
  Constant value = MakeFloats({}, {0});
  if (found != c.node.attributes.end() && found->second.tensor != nullptr)
    value = *found->second.tensor;
  if (value.Count() != 1) c.graph.Refuse(c.node, "its value must be one number");
  return SelectElements(value, dims, [](int64_t) { return 0; });
}

// Folds nodes whose result depends only on the shape of their input.
Results FoldShapeOf(const ImportGraph& graph, const ImportNode& node) {
  if (node.Input(0) < 0) graph.Refuse(node, "its input is missing; the file is damaged");
  const Dims& dims = graph.DimsOf(node.inputs[0]);
  if (node.op == "Size") return OneResult(MakeInts({}, {CountOf(dims)}));
  const auto rank = static_cast<int64_t>(dims.size());
  const auto clamp = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const int64_t start = clamp(node.Int("start", 0)), end = clamp(node.Int("end", rank));
  Dims part;
  for (int64_t i = start; i < end; ++i) part.push_back(dims[static_cast<size_t>(i)]);
  const auto count = static_cast<int64_t>(part.size());
  return OneResult(MakeInts({count}, std::move(part)));
}

// Folds nodes that keep or move numbers. Returns nothing for other nodes.
Results FoldMoves(const FoldContext& c) {
  const std::string& op = c.node.op;
  const auto dims = [&]() -> const Dims& { return c.In(0).dims; };
  const auto ints = [&](const char* attribute) {
    return IntsOf(c.graph, c.node, attribute, 1).value_or(Dims());
  };
  if (op == "Identity" || op == "Dropout") return OneResult(c.In(0));
  if (op == "Transpose") return OneResult(FoldTranspose(c));
  if (op == "Reshape") {
    return OneResult(FoldReshape(c, ReshapedDims(c.graph, c.node, dims(), ints("shape"))));
  }
  if (op == "Flatten") return OneResult(FoldReshape(c, FlattenedDims(c.graph, c.node, dims())));
  if (op == "Squeeze") {
    const std::optional<Dims> axes = IntsOf(c.graph, c.node, "axes", 1);
    return OneResult(FoldReshape(c, SqueezedDims(c.graph, c.node, dims(), axes)));
  }
  if (op == "Unsqueeze") {
    return OneResult(FoldReshape(c, UnsqueezedDims(c.graph, c.node, dims(), ints("axes"))));
  }
  if (op == "Gather") return OneResult(FoldGather(c));
  if (op == "Concat") return OneResult(FoldConcat(c));
  if (op == "Slice") return OneResult(FoldSlice(c));
  if (op == "Split") return FoldSplit(c);
  if (op == "Tile") return OneResult(FoldTile(c));
  if (op == "Expand") {
    return OneResult(FoldExpand(c, BroadcastDims(c.graph, c.node, dims(), c.Integers(1))));
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::vector<Constant>> FoldNode(const ImportGraph& graph, const ImportNode& node,
                                              std::span<const Constant* const> inputs) {
  const FoldContext c{graph, node, inputs};
  const std::string& op = node.op;
  if (op == "Shape" || op == "Size") return FoldShapeOf(graph, node);
  if (Results moved = FoldMoves(c)) return moved;
  if (op == "Constant") return OneResult(FoldConstantNode(c));
  if (op == "ConstantOfShape") return OneResult(FoldConstantOfShape(c));
  if (op == "Range") return OneResult(FoldRange(c));
  if (op == "Cast") return OneResult(FoldCast(c));
  if (op == "Where") return OneResult(FoldWhere(c));
  for (const char* reduce : {"ReduceProd", "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"}) {
    if (op == reduce) return OneResult(FoldReduce(c));
  }
  if (const auto unary = UnaryRules().find(op); unary != UnaryRules().end()) {
    return OneResult(Unary(c.In(0), unary->second));
  }
  const auto binary = BinaryRules().find(op);
  if (binary != BinaryRules().end() && inputs.size() == 2) {
    const BinaryRule& rule = binary->second;
    return OneResult(Binary(c, rule.f, rule.whole, rule.gives_truth));
  }
  return std::nullopt;
}

}  // namespace trainer
