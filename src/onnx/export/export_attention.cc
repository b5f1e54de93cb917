// Exports MultiHeadAttention.

#include <cmath>

#include "export/layer_export.h"

namespace trainer {
namespace {

constexpr float kMaskedScore = -1e9f;  // exp of it is 0

// Returns x W^T + b. W is parameter `first`; b is parameter `first` + 1 if the layer has biases.
std::string AddProjection(const LayerExport& layer, const std::string& x, int first,
                          const std::string& role) {
  GraphWriter& graph = layer.graph();
  const bool bias = layer.proto().attention_param().bias_term();
  const std::string weight = layer.Param(first, role + "_weight");
  const std::string y = graph.Add("MatMul", {x, graph.Transpose(weight, {1, 0})});
  return bias ? graph.Add("Add", {y, layer.Param(first + 1, role + "_bias")}) : y;
}

// Returns a matrix that is added to the scores so that no position reads a later one.
std::string AddCausalMask(const LayerExport& layer) {
  const int64_t length = layer.FixedLength(layer.InShape(), 1);
  FloatArray mask{{length, length}, {}};
  for (int64_t i = 0; i < length; ++i) {
    for (int64_t j = 0; j < length; ++j) mask.values.push_back(j <= i ? 0 : kMaskedScore);
  }
  return layer.Constant(mask, "mask");
}

void ExportMultiHeadAttention(const LayerExport& layer) {
  const caffe::AttentionParameter& p = layer.proto().attention_param();
  GraphWriter& graph = layer.graph();
  const int64_t channels = layer.InShape()[2], heads = p.num_heads(), size = channels / heads;
  const std::string all = AddProjection(layer, layer.In(), 0, "in_proj");
  const std::string cut = graph.Reshape(all, {0, 0, 3, heads, size});
  const GraphWriter::Names parts =
      graph.Split(graph.Transpose(cut, {2, 0, 3, 1, 4}), 0, {1, 1, 1});  // (1, N, heads, L, size)
  const std::string q = graph.Squeeze(parts[0], {0}), k = graph.Squeeze(parts[1], {0});
  const std::string v = graph.Squeeze(parts[2], {0});
  const std::string products = graph.Add("MatMul", {q, graph.Transpose(k, {0, 1, 3, 2})});
  std::string scores = graph.Line(products, 1 / std::sqrt(static_cast<float>(size)), 0);
  if (p.causal()) scores = graph.Add("Add", {scores, AddCausalMask(layer)});
  const std::string shares = graph.Add("Softmax", {scores}, {{"axis", 3}});
  const std::string mixed = graph.Add("MatMul", {shares, v});
  const std::string joined = graph.Reshape(graph.Transpose(mixed, {0, 2, 1, 3}), {0, 0, channels});
  layer.Set(0, AddProjection(layer, joined, p.bias_term() ? 2 : 1, "out_proj"));
}

const RegisterExport kExportMultiHeadAttention({"MultiHeadAttention"}, {ExportMultiHeadAttention});

}  // namespace
}  // namespace trainer
