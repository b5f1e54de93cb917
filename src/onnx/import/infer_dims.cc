// Computes the shapes of the values that the net computes while it runs.

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "import/fold.h"
#include "import/infer.h"
#include "import/window.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using Infer = void (*)(ImportGraph&, const ImportNode&);

const Dims& InputDimsOf(const ImportGraph& graph, const ImportNode& node, size_t i = 0) {
  if (node.Input(i) < 0) {
    graph.Refuse(node, Join("its input ", i, " is missing; the file is damaged"));
  }
  return graph.DimsOf(node.inputs[i]);
}

// Returns the shape of a weight that must be a constant of at least `rank` axes.
const Dims& WeightDimsOf(const ImportGraph& graph, const ImportNode& node, size_t i, size_t rank) {
  const Dims& dims = InputDimsOf(graph, node, i);
  if (graph.ConstantOf(node.inputs[i]) == nullptr) {
    graph.Refuse(node, Join("its weight (input ", i,
                            ") is computed by the net; a layer has constant weights"));
  }
  if (dims.size() < rank) {
    graph.Refuse(node, Join("its weight ", DimsText(dims), " has too few axes"));
  }
  return dims;
}

void InferSame(ImportGraph& graph, const ImportNode& node) {
  const Dims dims = InputDimsOf(graph, node);
  for (size_t i = 0; i < node.outputs.size(); ++i) graph.SetDims(node, i, dims);
}

void InferBroadcast(ImportGraph& graph, const ImportNode& node) {
  Dims dims = InputDimsOf(graph, node);
  const bool takes_many =
      node.op == "Max" || node.op == "Min" || node.op == "Sum" || node.op == "Mean";
  if (!takes_many && node.inputs.size() != 2) graph.Refuse(node, "it must have two inputs");
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    dims = BroadcastDims(graph, node, dims, InputDimsOf(graph, node, i));
  }
  graph.SetDims(node, 0, dims);
}

void InferConv(ImportGraph& graph, const ImportNode& node) {
  const Dims in = InputDimsOf(graph, node), weight = WeightDimsOf(graph, node, 1, 3);
  const bool transposed = node.op == "ConvTranspose";
  const int64_t group = node.Int("group", 1);
  if (in.size() != weight.size() || group < 1 || weight[0] % group != 0 ||
      in[1] != (transposed ? weight[0] : weight[1] * group)) {
    graph.Refuse(node, Join("its weight ", DimsText(weight), " with ", group,
                            " groups does not fit its input ", DimsText(in)));
  }
  const Dims kernel(weight.begin() + 2, weight.end());
  if (CountOf(weight) == 0) graph.Refuse(node, "its weight is empty");
  const ImportWindow window = transposed ? ReadTransposedWindow(graph, node, in, kernel)
                                         : ReadWindow(graph, node, in, kernel);
  Dims out = {in[0], transposed ? weight[1] * group : weight[0]};
  out.insert(out.end(), window.out.begin(), window.out.end());
  graph.SetDims(node, 0, out);
}

void InferPool(ImportGraph& graph, const ImportNode& node) {
  const Dims in = InputDimsOf(graph, node);
  const ImportWindow window = ReadWindow(graph, node, in, {});
  Dims out = {in[0], in[1]};
  out.insert(out.end(), window.out.begin(), window.out.end());
  for (size_t i = 0; i < node.outputs.size(); ++i) graph.SetDims(node, i, out);
}

void InferGlobalPool(ImportGraph& graph, const ImportNode& node) {
  Dims out = InputDimsOf(graph, node);
  if (out.size() < 3) graph.Refuse(node, "its input has no spatial axes");
  std::fill(out.begin() + 2, out.end(), 1);
  graph.SetDims(node, 0, out);
}

void InferGemm(ImportGraph& graph, const ImportNode& node) {
  const Dims a = InputDimsOf(graph, node), b = InputDimsOf(graph, node, 1);
  if (a.size() != 2 || b.size() != 2) graph.Refuse(node, "its inputs must be matrices");
  const bool trans_a = node.Int("transA", 0) != 0, trans_b = node.Int("transB", 0) != 0;
  if (a[trans_a ? 0 : 1] != b[trans_b ? 1 : 0]) {
    graph.Refuse(node,
                 Join("matrices ", DimsText(a), " and ", DimsText(b), " cannot be multiplied"));
  }
  graph.SetDims(node, 0, {a[trans_a ? 1 : 0], b[trans_b ? 0 : 1]});
}

void InferMatMul(ImportGraph& graph, const ImportNode& node) {
  const Dims a = InputDimsOf(graph, node), b = InputDimsOf(graph, node, 1);
  if (a.size() < 2 || b.size() < 2) {
    graph.Refuse(node, "an input is a vector; only matrices can be imported");
  }
  if (a.back() != b[b.size() - 2]) {
    graph.Refuse(node,
                 Join("matrices ", DimsText(a), " and ", DimsText(b), " cannot be multiplied"));
  }
  Dims out = BroadcastDims(graph, node, Dims(a.begin(), a.end() - 2), Dims(b.begin(), b.end() - 2));
  out.push_back(a[a.size() - 2]);
  out.push_back(b.back());
  graph.SetDims(node, 0, out);
}

void InferConcat(ImportGraph& graph, const ImportNode& node) {
  Dims out = InputDimsOf(graph, node);
  const auto axis = static_cast<size_t>(AxisOf(graph, node, node.Int("axis", 1), out.size()));
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    Dims other = InputDimsOf(graph, node, i);
    const int64_t added = axis < other.size() ? other[axis] : 0;
    if (other.size() == out.size()) other[axis] = out[axis];
    if (other != out) {
      graph.Refuse(node, Join("input ", i, " of shape ", DimsText(InputDimsOf(graph, node, i)),
                              " cannot be joined to ", DimsText(out), " along axis ", axis));
    }
    out[axis] += added;
    if (!AreValidDims(out)) graph.Refuse(node, "its result is too large for any memory");
  }
  graph.SetDims(node, 0, out);
}

void InferSplit(ImportGraph& graph, const ImportNode& node) {
  const Dims in = InputDimsOf(graph, node);
  const auto axis = static_cast<size_t>(AxisOf(graph, node, node.Int("axis", 0), in.size()));
  const Dims lengths = SplitLengths(graph, node, in[axis], IntsOf(graph, node, "split", 1));
  for (size_t i = 0; i < lengths.size(); ++i) {
    Dims out = in;
    out[axis] = lengths[i];
    graph.SetDims(node, i, out);
  }
}

void InferSlice(ImportGraph& graph, const ImportNode& node) {
  Dims out;
  for (const AxisSlice& slice : SlicesOf(graph, node)) out.push_back(slice.count);
  graph.SetDims(node, 0, out);
}

void InferGather(ImportGraph& graph, const ImportNode& node) {
  const Dims in = InputDimsOf(graph, node), indices = InputDimsOf(graph, node, 1);
  const int axis = AxisOf(graph, node, node.Int("axis", 0), in.size());
  Dims out(in.begin(), in.begin() + axis);
  out.insert(out.end(), indices.begin(), indices.end());
  out.insert(out.end(), in.begin() + axis + 1, in.end());
  graph.SetDims(node, 0, out);
}

void InferReshape(ImportGraph& graph, const ImportNode& node) {
  const Dims in = InputDimsOf(graph, node);
  if (node.op == "Flatten") return graph.SetDims(node, 0, FlattenedDims(graph, node, in));
  const std::optional<Dims> ints = IntsOf(graph, node, node.op == "Reshape" ? "shape" : "axes", 1);
  if (node.op == "Squeeze") {
    return graph.SetDims(node, 0, SqueezedDims(graph, node, in, ints));
  }
  if (!ints) graph.Refuse(node, "its second input is missing; the file is damaged");
  graph.SetDims(node, 0,
                node.op == "Reshape" ? ReshapedDims(graph, node, in, *ints)
                                     : UnsqueezedDims(graph, node, in, *ints));
}

void InferTranspose(ImportGraph& graph, const ImportNode& node) {
  const Dims in = InputDimsOf(graph, node);
  Dims out;
  for (const int64_t axis : OrderOf(graph, node)) out.push_back(in[static_cast<size_t>(axis)]);
  graph.SetDims(node, 0, out);
}

void InferPad(ImportGraph& graph, const ImportNode& node) {
  Dims out = InputDimsOf(graph, node);
  const Dims pads = PadsOf(graph, node);
  for (size_t i = 0; i < out.size(); ++i) out[i] += pads[i] + pads[out.size() + i];
  graph.SetDims(node, 0, out);
}

void InferResize(ImportGraph& graph, const ImportNode& node) {
  graph.SetDims(node, 0, ResizedDims(graph, node));
}

void InferExpand(ImportGraph& graph, const ImportNode& node) {
  const std::optional<Dims> shape = IntsOf(graph, node, "shape", 1);
  const Dims in = InputDimsOf(graph, node);
  if (!shape || !AreValidDims(*shape)) graph.Refuse(node, "its shape is not possible");
  graph.SetDims(node, 0, BroadcastDims(graph, node, in, *shape));
}

void InferTile(ImportGraph& graph, const ImportNode& node) {
  Dims out = InputDimsOf(graph, node);
  const Dims repeats = IntsOf(graph, node, "repeats", 1).value_or(Dims());
  if (repeats.size() != out.size()) graph.Refuse(node, "repeats must name each axis once");
  for (size_t i = 0; i < out.size(); ++i) {
    if (__builtin_mul_overflow(out[i], repeats[i], &out[i])) out[i] = -1;
  }
  graph.SetDims(node, 0, out);
}

void InferReduce(ImportGraph& graph, const ImportNode& node) {
  const Dims in = InputDimsOf(graph, node);
  const std::vector<bool> reduced = ReducedAxes(graph, node);
  Dims out;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!reduced[i]) out.push_back(in[i]);
    if (reduced[i] && node.Int("keepdims", 1) != 0) out.push_back(1);
  }
  graph.SetDims(node, 0, out);
}

void InferBlocks(ImportGraph& graph, const ImportNode& node) {
  const Dims in = InputDimsOf(graph, node);
  const int64_t side = node.Int("blocksize", 0);
  const bool to_depth = node.op == "SpaceToDepth";
  if (in.size() != 4 || side < 1 || side > 1 << 15 || (!to_depth && in[1] % (side * side) != 0) ||
      (to_depth && (in[2] % side != 0 || in[3] % side != 0))) {
    graph.Refuse(node, Join("blocks of ", side, " do not fit its input ", DimsText(in)));
  }
  if (to_depth) {
    graph.SetDims(node, 0, {in[0], in[1] * side * side, in[2] / side, in[3] / side});
  } else {
    graph.SetDims(node, 0, {in[0], in[1] / (side * side), in[2] * side, in[3] * side});
  }
}

void InferLstm(ImportGraph& graph, const ImportNode& node) {
  const Dims in = InputDimsOf(graph, node), weight = WeightDimsOf(graph, node, 1, 3);
  const Dims recurrent = WeightDimsOf(graph, node, 2, 3);
  const int64_t hidden = recurrent[2];
  if (in.size() != 3 || weight.size() != 3 || recurrent.size() != 3 || hidden < 1 ||
      weight[0] > 2 || weight[2] != in[2] || weight[1] != 4 * hidden ||
      recurrent[1] != 4 * hidden || recurrent[0] != weight[0]) {
    graph.Refuse(node, Join("its weights ", DimsText(weight), " and ", DimsText(recurrent),
                            " do not fit its input ", DimsText(in)));
  }
  if (node.Int("layout", 0) != 0) {
    graph.Refuse(node, "layout 1 (batch first) is not imported; export with layout 0");
  }
  graph.SetDims(node, 0, {in[0], weight[0], in[1], hidden});
  for (const size_t state : {1u, 2u}) graph.SetDims(node, state, {weight[0], in[1], hidden});
}

// Returns whether the operator's result has the shape of its input.
bool KeepsShape(const std::string& op) {
  for (const char* one : {"Relu",
                          "LeakyRelu",
                          "PRelu",
                          "Sigmoid",
                          "Tanh",
                          "Elu",
                          "Selu",
                          "Celu",
                          "Softplus",
                          "Softsign",
                          "Abs",
                          "Exp",
                          "Log",
                          "Sqrt",
                          "Reciprocal",
                          "Neg",
                          "Clip",
                          "Erf",
                          "HardSigmoid",
                          "HardSwish",
                          "Mish",
                          "Gelu",
                          "Swish",
                          "Softmax",
                          "LogSoftmax",
                          "Dropout",
                          "Identity",
                          "Cast",
                          "LRN",
                          "LpNormalization",
                          "BatchNormalization",
                          "InstanceNormalization",
                          "GroupNormalization",
                          "LayerNormalization",
                          "MeanVarianceNormalization"}) {
    if (op == one) return true;
  }
  return false;
}

const std::map<std::string, Infer>& InferRules() {
  static const std::map<std::string, Infer> rules = [] {
    std::map<std::string, Infer> all = {{"Conv", InferConv},
                                        {"ConvTranspose", InferConv},
                                        {"MaxPool", InferPool},
                                        {"AveragePool", InferPool},
                                        {"GlobalMaxPool", InferGlobalPool},
                                        {"GlobalAveragePool", InferGlobalPool},
                                        {"Gemm", InferGemm},
                                        {"MatMul", InferMatMul},
                                        {"Concat", InferConcat},
                                        {"Split", InferSplit},
                                        {"Slice", InferSlice},
                                        {"Gather", InferGather},
                                        {"Flatten", InferReshape},
                                        {"Reshape", InferReshape},
                                        {"Squeeze", InferReshape},
                                        {"Unsqueeze", InferReshape},
                                        {"Transpose", InferTranspose},
                                        {"Pad", InferPad},
                                        {"Resize", InferResize},
                                        {"Upsample", InferResize},
                                        {"Expand", InferExpand},
                                        {"Tile", InferTile},
                                        {"DepthToSpace", InferBlocks},
                                        {"SpaceToDepth", InferBlocks},
                                        {"LSTM", InferLstm}};
    for (const char* op : {"Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Sum", "Mean"}) {
      all[op] = InferBroadcast;
    }
    for (const char* op : {"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1",
                           "ReduceL2", "ReduceSumSquare", "ArgMax"}) {
      all[op] = InferReduce;
    }
    return all;
  }();
  return rules;
}

}  // namespace

void InferDims(ImportGraph& graph, const ImportNode& node) {
  if (KeepsShape(node.op)) return InferSame(graph, node);
  const auto found = InferRules().find(node.op);
  if (found == InferRules().end()) {
    graph.Refuse(node,
                 "no layer of a net computes this operator, so the model cannot be imported; "
                 "docs/models.md lists the operators that can be");
  }
  found->second(graph, node);
}

}  // namespace trainer
