// Exports normalisations, Scale and Bias.

#include <algorithm>
#include <numeric>

#include "export/affine_folding.h"
#include "export/layer_export.h"
#include "export/pool_nodes.h"

namespace trainer {
namespace {

// Returns the axes [from, to).
std::vector<int64_t> AxesBetween(int from, int to) {
  std::vector<int64_t> axes(static_cast<size_t>(to - from));
  std::iota(axes.begin(), axes.end(), from);
  return axes;
}

// Returns a parameter with `count` axes of length 1 appended.
FloatArray WithTrailingAxes(FloatArray array, int count) {
  array.dims.insert(array.dims.end(), static_cast<size_t>(count), 1);
  return array;
}

// Returns x minus its mean over `axes`.
std::string SubtractMean(GraphWriter& graph, const std::string& x,
                         const std::vector<int64_t>& axes) {
  return graph.Add("Sub", {x, graph.Reduce("ReduceMean", x, axes, true)});
}

// Returns the variance of values whose mean is 0.
std::string AddVariance(GraphWriter& graph, const std::string& centered,
                        const std::vector<int64_t>& axes) {
  return graph.Reduce("ReduceMean", graph.Add("Mul", {centered, centered}), axes, true);
}

// Returns (x - mean) / sqrt(variance + eps) over `axes`.
std::string AddStandardized(GraphWriter& graph, const std::string& x,
                            const std::vector<int64_t>& axes, float eps) {
  const std::string centered = SubtractMean(graph, x, axes);
  const std::string variance = AddVariance(graph, centered, axes);
  return graph.Add("Div", {centered, graph.Add("Sqrt", {graph.Line(variance, 1, eps)})});
}

// Returns y * p + q, where p is parameter `first` and q is parameter `first` + 1. Both cover the
// axes of y from `axis` on, without the last `trailing` axes.
std::string AddLearnedLine(const LayerExport& layer, const std::string& y, int first,
                           int trailing) {
  GraphWriter& graph = layer.graph();
  const std::string scale =
      layer.Constant(WithTrailingAxes(layer.ReadParam(first), trailing), "scale");
  const std::string bias =
      layer.Constant(WithTrailingAxes(layer.ReadParam(first + 1), trailing), "bias");
  return graph.Add("Add", {graph.Add("Mul", {y, scale}), bias});
}

// Returns whether a BatchNorm learns scale and bias itself.
bool HasScaleAndBias(const LayerExport& layer) {
  return static_cast<size_t>(layer.NumParams()) > kMeanVarianceFactor;
}

// Computes the statistics from the batch, as Caffe does in phase TEST with use_global_stats: false.
void ExportBatchStatistics(const LayerExport& layer, float eps) {
  const int rank = layer.InShape().Rank();
  std::vector<int64_t> axes = AxesBetween(1, rank);
  axes[0] = 0;
  std::string y = AddStandardized(layer.graph(), layer.In(), axes, eps);
  if (HasScaleAndBias(layer)) y = AddLearnedLine(layer, y, 3, rank - 2);
  layer.Set(0, y);
}

void ExportBatchNorm(const LayerExport& layer) {
  const float eps = EpsilonOf(layer.spec(), static_cast<size_t>(layer.NumParams()));
  if (!UsesStoredStatistics(layer.spec())) return ExportBatchStatistics(layer, eps);
  FloatArray mean = layer.ReadParam(0), variance = layer.ReadParam(1);
  const float sum = layer.ReadParam(2).values[0], weight = sum == 0 ? 0 : 1 / sum;
  for (float& value : mean.values) value *= weight;
  for (float& value : variance.values) value *= weight;
  FloatArray scale = mean, bias = mean;
  std::fill(scale.values.begin(), scale.values.end(), 1.0f);
  std::fill(bias.values.begin(), bias.values.end(), 0.0f);
  if (HasScaleAndBias(layer)) {
    scale = layer.ReadParam(3);
    bias = layer.ReadParam(4);
  }
  if (const std::optional<ChannelAffine> folded = layer.FoldedLayers()) {
    for (size_t c = 0; c < scale.values.size(); ++c) {
      scale.values[c] = static_cast<float>(scale.values[c] * folded->factor[c]);
      bias.values[c] = static_cast<float>(bias.values[c] * folded->factor[c] + folded->shift[c]);
    }
  }
  layer.Set(0, layer.graph().Add(
                   "BatchNormalization",
                   {layer.In(), layer.Constant(scale, "scale"), layer.Constant(bias, "bias"),
                    layer.Constant(mean, "mean"), layer.Constant(variance, "variance")},
                   {{"epsilon", eps}}));
}

// Returns the second operand of Scale or Bias, a parameter or the second input, aligned with the
// axes of the first one.
std::string AddOperand(const LayerExport& layer, int axis, std::string_view role) {
  const int rank = layer.InShape().Rank();
  if (layer.NumInputs() == 1) {
    const FloatArray array = layer.ReadParam(0);
    const int own = static_cast<int>(array.dims.size());
    return layer.Constant(WithTrailingAxes(array, rank - axis - own), role);
  }
  const int own = layer.InShape(1).Rank();
  if (own == 0) return layer.In(1);
  return layer.graph().Unsqueeze(layer.In(1), AxesBetween(own, rank - axis));
}

void ExportScale(const LayerExport& layer) {
  const caffe::ScaleParameter& p = layer.proto().scale_param();
  GraphWriter& graph = layer.graph();
  const int axis = layer.InShape().Axis(p.axis());
  std::string y = graph.Add("Mul", {layer.In(), AddOperand(layer, axis, "scale")});
  if (p.bias_term()) {
    const FloatArray bias = layer.ReadParam(layer.NumInputs() == 1 ? 1 : 0);
    const int own = static_cast<int>(bias.dims.size());
    const int trailing = own == 0 ? 0 : layer.InShape().Rank() - axis - own;
    y = graph.Add("Add", {y, layer.Constant(WithTrailingAxes(bias, trailing), "bias")});
  }
  layer.Set(0, y);
}

void ExportBias(const LayerExport& layer) {
  const int axis = layer.InShape().Axis(layer.proto().bias_param().axis());
  layer.Set(0, layer.graph().Add("Add", {layer.In(), AddOperand(layer, axis, "bias")}));
}

void ExportLayerNorm(const LayerExport& layer) {
  const caffe::LayerNormParameter& p = layer.proto().layer_norm_param();
  GraphWriter& graph = layer.graph();
  const int rank = layer.InShape().Rank(), axis = layer.InShape().Axis(p.axis());
  if (graph.opset() >= 17 && p.scale_bias()) {
    layer.Set(0, graph.Add("LayerNormalization",
                           {layer.In(), layer.Param(0, "scale"), layer.Param(1, "bias")},
                           {{"axis", axis}, {"epsilon", p.eps()}}));
    return;
  }
  std::string y = AddStandardized(graph, layer.In(), AxesBetween(axis, rank), p.eps());
  if (p.scale_bias()) y = AddLearnedLine(layer, y, 0, 0);
  layer.Set(0, y);
}

// Reshapes each group to one channel, so that InstanceNormalization normalises by group.
void ExportGroupNorm(const LayerExport& layer) {
  const caffe::GroupNormParameter& p = layer.proto().group_norm_param();
  GraphWriter& graph = layer.graph();
  const FreeShape& in = layer.InShape();
  const int64_t groups = p.groups();
  const std::vector<float> ones(p.groups(), 1.0f), zeros(p.groups(), 0.0f);
  const std::string rows = graph.Reshape(layer.In(), {0, groups, -1});
  const std::string normal = graph.Add(
      "InstanceNormalization", {rows, graph.Floats(ones, {groups}), graph.Floats(zeros, {groups})},
      {{"epsilon", p.eps()}});
  FreeShape grouped{{in[0], groups, in.Count(1, in.Rank()) / groups}, {in.IsFree(0), false, false}};
  for (int axis = 1; axis < in.Rank(); ++axis) {
    grouped.free[2] = grouped.free[2] || in.IsFree(axis);
  }
  std::string y = layer.Reshape(normal, grouped, in);
  if (p.scale_bias()) y = AddLearnedLine(layer, y, 0, in.Rank() - 2);
  layer.Set(0, y);
}

void ExportLrn(const LayerExport& layer) {
  const caffe::LRNParameter& p = layer.proto().lrn_param();
  GraphWriter& graph = layer.graph();
  const std::string x = layer.In();
  const int64_t size = p.local_size();
  if (p.norm_region() == caffe::LRNParameter::ACROSS_CHANNELS) {
    layer.Set(
        0, graph.Add("LRN", {x},
                     {{"size", size}, {"alpha", p.alpha()}, {"beta", p.beta()}, {"bias", p.k()}}));
    return;
  }
  const auto windows = [&](int axis) {
    const int64_t length = layer.InShape()[axis];
    return PoolAxis{
        .in = length, .kernel = size, .stride = 1, .pad = (size - 1) / 2, .out = length};
  };
  const std::string mean = AddAveragePool(graph, graph.Add("Mul", {x, x}), windows(2), windows(3));
  const std::string root =
      graph.Add("Pow", {graph.Line(mean, p.alpha(), 1), graph.Float(p.beta())});
  layer.Set(0, graph.Add("Div", {x, root}));
}

void ExportMvn(const LayerExport& layer) {
  const caffe::MVNParameter& p = layer.proto().mvn_param();
  GraphWriter& graph = layer.graph();
  const int rank = layer.InShape().Rank();
  const std::vector<int64_t> axes = AxesBetween(p.across_channels() ? 1 : 2, rank);
  if (axes.empty()) {  // without axes, each value equals its mean
    layer.Set(0, graph.Add("Sub", {layer.In(), layer.In()}));
    return;
  }
  std::string y = SubtractMean(graph, layer.In(), axes);
  if (p.normalize_variance()) {
    const std::string deviation = graph.Add("Sqrt", {AddVariance(graph, y, axes)});
    y = graph.Add("Div", {y, graph.Line(deviation, 1, p.eps())});
  }
  layer.Set(0, y);
}

void ExportNormalize(const LayerExport& layer) {
  const caffe::NormalizeParameter& p = layer.proto().norm_param();
  GraphWriter& graph = layer.graph();
  const int rank = layer.InShape().Rank();
  const std::string x = layer.In();
  const std::vector<int64_t> axes = AxesBetween(1, p.across_spatial() ? rank : 2);
  const std::string squares = graph.Reduce("ReduceSum", graph.Add("Mul", {x, x}), axes, true);
  const std::string length = graph.Add("Sqrt", {graph.Line(squares, 1, p.eps())});
  const FloatArray scale = layer.ReadParam(0);
  const int trailing = p.channel_shared() ? 0 : rank - 2;
  layer.Set(0, graph.Add("Mul", {graph.Add("Div", {x, length}),
                                 layer.Constant(WithTrailingAxes(scale, trailing), "scale")}));
}

const RegisterExport kExportBatchNorm({"BatchNorm"}, {ExportBatchNorm});
const RegisterExport kExportScale({"Scale"}, {ExportScale});
const RegisterExport kExportBias({"Bias"}, {ExportBias});
const RegisterExport kExportLayerNorm({"LayerNorm"}, {ExportLayerNorm});
const RegisterExport kExportGroupNorm({"GroupNorm"}, {ExportGroupNorm});
const RegisterExport kExportLrn({"LRN"}, {ExportLrn});
const RegisterExport kExportMvn({"MVN"}, {ExportMvn});
const RegisterExport kExportNormalize({"Normalize"}, {ExportNormalize});

}  // namespace
}  // namespace trainer
