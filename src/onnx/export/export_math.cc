// Exports layers that combine values: sums, products, maxima and look-ups in tables.

#include <algorithm>
#include <numeric>
#include <utility>

#include "export/layer_export.h"

namespace trainer {
namespace {

void ExportEltwise(const LayerExport& layer) {
  const caffe::EltwiseParameter& p = layer.proto().eltwise_param();
  GraphWriter& graph = layer.graph();
  GraphWriter::Names inputs;
  for (int i = 0; i < layer.NumInputs(); ++i) {
    inputs.push_back(p.coeff_size() > 0 ? graph.Line(layer.In(i), p.coeff(i), 0) : layer.In(i));
  }
  switch (p.operation()) {
    case caffe::EltwiseParameter::SUM:
      return layer.Set(0, graph.Chain("Add", inputs));
    case caffe::EltwiseParameter::PROD:
      return layer.Set(0, graph.Chain("Mul", inputs));
    default:
      return layer.Set(0, graph.Add("Max", inputs));
  }
}

void ExportReduction(const LayerExport& layer) {
  const caffe::ReductionParameter& p = layer.proto().reduction_param();
  GraphWriter& graph = layer.graph();
  const FreeShape& in = layer.InShape();
  std::string x = layer.In();
  if (p.operation() == caffe::ReductionParameter::ASUM) x = graph.Add("Abs", {x});
  if (p.operation() == caffe::ReductionParameter::SUMSQ) x = graph.Add("Mul", {x, x});
  if (in.Rank() > 0) {
    const int axis = in.Axis(p.axis());
    std::vector<int64_t> axes(static_cast<size_t>(in.Rank() - axis));
    std::iota(axes.begin(), axes.end(), axis);
    const bool is_mean = p.operation() == caffe::ReductionParameter::MEAN;
    x = graph.Reduce(is_mean ? "ReduceMean" : "ReduceSum", x, axes, false);
  }
  layer.Set(0, graph.Line(x, p.coeff(), 0));
}

// Holds the indices, as floats, and the values of the largest numbers along an axis.
struct TopValues {
  std::string indices, values;
};

// Reverses the axis before TopK: among equal values, Caffe prefers the later one and TopK prefers
// the earlier one.
TopValues AddTopK(const LayerExport& layer, const std::string& x, int axis, int64_t length,
                  int64_t k) {
  GraphWriter& graph = layer.graph();
  const std::string reversed = graph.Add("Slice", {x, graph.Ints({-1}), graph.Ints({-length - 1}),
                                                   graph.Ints({axis}), graph.Ints({-1})});
  const GraphWriter::Names top =
      graph.AddMany("TopK", {reversed, graph.Ints({k})}, 2, {{"axis", axis}});
  const std::string index = graph.Add("Sub", {graph.Int(length - 1), top[1]});
  return {graph.Cast(index, onnx::TensorProto::FLOAT), top[0]};
}

TopValues AddArgMax(const LayerExport& layer, const std::string& x, int axis, bool needs_values) {
  GraphWriter& graph = layer.graph();
  const std::string index =
      graph.Add("ArgMax", {x}, {{"axis", axis}, {"keepdims", 1}, {"select_last_index", 1}});
  return {graph.Cast(index, onnx::TensorProto::FLOAT),
          needs_values ? graph.Reduce("ReduceMax", x, {axis}, true) : ""};
}

void ExportArgMax(const LayerExport& layer) {
  const caffe::ArgMaxParameter& p = layer.proto().argmax_param();
  GraphWriter& graph = layer.graph();
  const FreeShape &in = layer.InShape(), &out = layer.OutShape();
  std::string x = layer.In();
  FreeShape rows = in;
  int axis = p.has_axis() ? in.Axis(p.axis()) : 1;
  if (!p.has_axis()) {
    if (in.Rank() == 1) x = graph.Unsqueeze(x, {1});
    if (in.Rank() > 2) x = graph.Add("Flatten", {x}, {{"axis", 1}});
    rows = in.Merged(1, in.Rank());
  }
  const int64_t length = layer.FixedLength(rows, axis);
  const bool both = p.out_max_val() && !p.has_axis();
  if (p.out_max_val() && !both) {
    layer.Set(0, p.top_k() == 1 ? graph.Reduce("ReduceMax", x, {axis}, true)
                                : AddTopK(layer, x, axis, length, p.top_k()).values);
    return;
  }
  const TopValues top =
      p.top_k() == 1 ? AddArgMax(layer, x, axis, both) : AddTopK(layer, x, axis, length, p.top_k());
  if (p.has_axis()) return layer.Set(0, top.indices);
  const FreeShape found{{in[0], both ? 2 * int64_t{p.top_k()} : int64_t{p.top_k()}},
                        {in.IsFree(0), false}};
  const std::string y =
      both ? graph.Add("Concat", {top.indices, top.values}, {{"axis", 1}}) : top.indices;
  layer.Set(0, layer.Reshape(y, found, out));
}

// Swaps the last two axes if `swaps`.
std::string SwapMatrixAxes(GraphWriter& graph, const std::string& x, int rank, bool swaps) {
  if (!swaps) return x;
  std::vector<int64_t> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return graph.Transpose(x, order);
}

void ExportMatMul(const LayerExport& layer) {
  const caffe::MatMulParameter& p = layer.proto().matmul_param();
  GraphWriter& graph = layer.graph();
  const int rank = layer.InShape().Rank();
  layer.Set(0, graph.Add("MatMul", {SwapMatrixAxes(graph, layer.In(0), rank, p.transpose_a()),
                                    SwapMatrixAxes(graph, layer.In(1), rank, p.transpose_b())}));
}

void ExportGram(const LayerExport& layer) {
  GraphWriter& graph = layer.graph();
  const FreeShape& in = layer.InShape();
  const std::string rows = graph.Reshape(layer.In(), {0, 0, -1});
  const std::string products = graph.Add("MatMul", {rows, graph.Transpose(rows, {0, 2, 1})});
  int64_t count = 1;
  for (int axis = 1; layer.proto().gram_param().normalize() && axis < in.Rank(); ++axis) {
    count *= layer.FixedLength(in, axis);
  }
  layer.Set(0, graph.Line(products, 1 / static_cast<float>(count), 0));
}

// Casts the indices to integers, because the net holds them as floats.
void ExportEmbed(const LayerExport& layer) {
  GraphWriter& graph = layer.graph();
  const std::string index = graph.Cast(layer.In(), onnx::TensorProto::INT64);
  std::string y = graph.Add("Gather", {layer.Param(0, "weight"), index}, {{"axis", 0}});
  if (layer.NumParams() > 1) y = graph.Add("Add", {y, layer.Param(1, "bias")});
  layer.Set(0, y);
}

// Exports only the means of the units, because the other outputs serve training.
void ExportRbm(const LayerExport& layer) {
  const caffe::RBMParameter& p = layer.proto().rbm_param();
  GraphWriter& graph = layer.graph();
  if (p.sample()) layer.RefuseIn("rbm_param", "sample", "ONNX has no random numbers that repeat");
  const bool down = p.output() == caffe::RBMParameter::VISIBLE;
  const FreeShape& in = layer.InShape();
  std::string x = layer.In();
  if (in.Rank() != 2) x = graph.Add("Flatten", {x}, {{"axis", in.Axis(p.axis())}});
  const std::string z =
      graph.Add("Gemm", {x, layer.Param(0, "weight"), layer.Param(down ? 2 : 1, "bias")},
                {{"transB", down ? 0 : 1}});
  const bool is_gaussian = down && p.visible() == caffe::RBMParameter::GAUSSIAN;
  const std::string y = is_gaussian ? z : graph.Add("Sigmoid", {z});
  const FreeShape rows = in.Merged(in.Axis(p.axis()), in.Rank()).Merged(0, in.Axis(p.axis()));
  FreeShape found = rows;
  found.dims[1] = layer.OutShape()[layer.OutShape().Rank() - 1];
  layer.Set(0, layer.OutShape().Rank() == 2 ? y : layer.Reshape(y, found, layer.OutShape()));
}

const RegisterExport kExportEltwise({"Eltwise"}, {ExportEltwise});
const RegisterExport kExportReduction({"Reduction"}, {ExportReduction});
const RegisterExport kExportArgMax({"ArgMax"}, {ExportArgMax});
const RegisterExport kExportMatMul({"MatMul"}, {ExportMatMul});
const RegisterExport kExportGram({"Gram"}, {ExportGram});
const RegisterExport kExportEmbed({"Embed"}, {ExportEmbed});
const RegisterExport kExportRbm({"RBM"}, {ExportRbm});

}  // namespace
}  // namespace trainer
