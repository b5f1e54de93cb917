#include <algorithm>

#include "import/importers.h"
#include "import/layer_helpers.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Returns the matrix as (rows, columns) of the transpose if `transpose` is set.
std::vector<float> MatrixValues(const Constant& matrix, bool transpose) {
  std::vector<float> values = FloatsOfConstant(matrix);
  if (!transpose) return values;
  const size_t rank = matrix.dims.size();
  const auto rows = static_cast<size_t>(matrix.dims[rank - 2]);
  const auto columns = static_cast<size_t>(matrix.dims[rank - 1]);
  std::vector<float> turned(values.size());
  for (size_t i = 0; i < rows; ++i) {
    for (size_t k = 0; k < columns; ++k) turned[k * rows + i] = values[i * columns + k];
  }
  return turned;
}

// Returns whether all axes but the last two have length 1.
bool IsMatrix(const Constant& constant) {
  const size_t rank = constant.dims.size();
  return rank >= 2 && std::all_of(constant.dims.begin(), constant.dims.end() - 2,
                                  [](int64_t dim) { return dim == 1; });
}

// Computes y = x W^T + b along the last axis of x. The inputs are x, the weight, which is (inputs,
// outputs) unless `transposed` is 1, and optionally a bias. FuseNodes replaces MatMul, Add and Gemm
// by this node.
void ImportLinear(NetBuilder& net, const ImportNode& node) {
  const int x = net.BlobOf(node, 0);
  const Constant& weight = *net.graph().ConstantOf(node.inputs[1]);
  const Constant* const bias = net.graph().ConstantOf(node.Input(2));
  const bool transposed = node.Int("transposed", 0) != 0;
  const int64_t outputs = weight.dims[weight.dims.size() - (transposed ? 2 : 1)];
  net.SetOutput(node, 0,
                AddInnerProduct(net, node, x, outputs, MatrixValues(weight, !transposed),
                                bias == nullptr ? std::vector<float>() : FloatsOfConstant(*bias)));
}

// Adds a MatMul layer and returns its top. Both blobs must have the same axes before the matrices.
int AddMatMul(NetBuilder& net, const ImportNode& node, int a, int b, bool trans_a, bool trans_b) {
  Dims dims = net.DimsOf(a);
  const Dims of_b = net.DimsOf(b);
  const size_t rank = dims.size();
  const int64_t rows = dims[rank - (trans_a ? 1 : 2)];
  dims[rank - 2] = rows;
  dims[rank - 1] = of_b[rank - (trans_b ? 2 : 1)];
  const NetBuilder::NewLayer added = net.Add(node, "MatMul", {a, b}, dims);
  if (trans_a) added.layer->mutable_matmul_param()->set_transpose_a(true);
  if (trans_b) added.layer->mutable_matmul_param()->set_transpose_b(true);
  return added.top;
}

void ImportMatMul(NetBuilder& net, const ImportNode& node) {
  const ImportGraph& graph = net.graph();
  const Dims out = graph.DimsOf(node.outputs[0]);
  const Constant* const left = graph.ConstantOf(node.inputs[0]);
  const Constant* const right = graph.ConstantOf(node.inputs[1]);
  if ((left != nullptr && !IsMatrix(*left)) || (right != nullptr && !IsMatrix(*right))) {
    graph.Refuse(node, "a constant input has a matrix for each item; layers have one matrix");
  }
  if (right != nullptr) {
    const int x =
        net.Reshape(node, net.BlobOf(node, 0), Dims(graph.DimsOf(node.inputs[0])), "shape");
    const int top = AddInnerProduct(net, node, x, out.back(), MatrixValues(*right, true), {});
    return net.SetOutput(node, 0, net.Reshape(node, top, out, "shape"));
  }
  if (left != nullptr) {
    const int x = net.BlobOf(node, 1);
    const size_t rank = net.DimsOf(x).size();
    AxisMatrix matrix{left->dims[left->dims.size() - 2], left->dims.back(),
                      MatrixValues(*left, false)};
    const int top = MultiplyAxis(net, node, x, rank - 2, matrix, "matrix");
    return net.SetOutput(node, 0, net.Reshape(node, top, out, "shape"));
  }
  const int a = net.BlobOf(node, 0), b = net.BlobOf(node, 1);
  Dims wide_a(out.begin(), out.end() - 2), wide_b = wide_a;
  const Dims of_a = net.DimsOf(a), of_b = net.DimsOf(b);
  wide_a.insert(wide_a.end(), of_a.end() - 2, of_a.end());
  wide_b.insert(wide_b.end(), of_b.end() - 2, of_b.end());
  net.SetOutput(node, 0,
                AddMatMul(net, node, BroadcastTo(net, node, a, wide_a, "a"),
                          BroadcastTo(net, node, b, wide_b, "b"), false, false));
}

// Imports each Gemm that FuseNodes could not replace by a Linear node.
void ImportGemm(NetBuilder& net, const ImportNode& node) {
  const ImportGraph& graph = net.graph();
  const Dims out = graph.DimsOf(node.outputs[0]);
  const bool trans_a = node.Int("transA", 0) != 0, trans_b = node.Int("transB", 0) != 0;
  const Constant* const weight = graph.ConstantOf(node.inputs[1]);
  int top = 0;
  if (weight != nullptr) {
    int x = net.BlobOf(node, 0);
    if (trans_a) x = net.Permute(node, x, {1, 0}, "turned");
    top = AddInnerProduct(net, node, x, out[1], MatrixValues(*weight, !trans_b), {});
  } else {
    top = AddMatMul(net, node, net.BlobOf(node, 0), net.BlobOf(node, 1), trans_a, trans_b);
  }
  const float alpha = node.Float("alpha", 1), beta = node.Float("beta", 1);
  if (alpha != 1) top = net.Power(node, top, alpha, 0, 1, "alpha");
  if (node.Input(2) >= 0 && beta != 0) {
    if (const Constant* const offset = graph.ConstantOf(node.inputs[2])) {
      Constant scaled = MakeFloats(offset->dims, FloatsOfConstant(*offset));
      for (float& value : scaled.floats) value *= beta;
      top = AddConstantTo(net, node, top, scaled, "bias");
    } else {
      const int c = BroadcastTo(net, node, net.BlobOf(node, 2), out, "c");
      const NetBuilder::NewLayer added = net.Add(node, "Eltwise", {top, c}, out, "sum");
      if (beta != 1) {
        added.layer->mutable_eltwise_param()->add_coeff(1);
        added.layer->mutable_eltwise_param()->add_coeff(beta);
      }
      top = added.top;
    }
  }
  net.SetOutput(node, 0, top);
}

// Imports self-attention over sequences (N, L, C), a node that FuseAttention creates. Its inputs
// are x, two weights and optionally two biases, in the format of MultiHeadAttention.
void ImportAttention(NetBuilder& net, const ImportNode& node) {
  const ImportGraph& graph = net.graph();
  const int x = net.BlobOf(node, 0);
  const NetBuilder::NewLayer added =
      net.Add(node, "MultiHeadAttention", {x}, graph.DimsOf(node.outputs[0]));
  caffe::AttentionParameter* const param = added.layer->mutable_attention_param();
  param->set_num_heads(static_cast<uint32_t>(node.Int("heads", 1)));
  if (node.Int("causal", 0) != 0) param->set_causal(true);
  if (node.inputs.size() < 5) param->set_bias_term(false);
  // The inputs from 1 on are in_proj_weight, in_proj_bias, out_proj_weight and out_proj_bias.
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const Constant& array = *graph.ConstantOf(node.inputs[i]);
    net.AddWeight(node, added, array.dims, FloatsOfConstant(array));
  }
  net.SetOutput(node, 0, added.top);
}

}  // namespace

void AddMatrixImporters(NodeImporters* all) {
  (*all)["Linear"] = ImportLinear;
  (*all)["MatMul"] = ImportMatMul;
  (*all)["Gemm"] = ImportGemm;
  (*all)["MultiHeadAttention"] = ImportAttention;
}

}  // namespace trainer
