#include <cmath>

#include "import/importers.h"
#include "import/layer_helpers.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Returns the numbers of a constant input. Throws unless there are `count` of them.
std::vector<float> WeightsOf(const NetBuilder& net, const ImportNode& node, size_t input,
                             int64_t count) {
  const Constant* const constant = net.graph().ConstantOf(node.Input(input));
  if (constant == nullptr || static_cast<int64_t>(constant->Count()) != count) {
    net.graph().Refuse(node, Join("its input ", input, " is not a constant of ", count,
                                  " numbers, as the layer's weight must be"));
  }
  return FloatsOfConstant(*constant);
}

// Adds `scale` and `bias` as the weights of the layer.
void AddLine(NetBuilder& net, const ImportNode& node, const NetBuilder::NewLayer& added,
             const Dims& dims, const std::vector<float>& scale, const std::vector<float>& bias) {
  net.AddWeight(node, added, dims, scale);
  net.AddWeight(node, added, dims, bias);
}

// Adds a BatchNorm layer with the stored averages, and a Scale layer with the learned scale and
// bias.
void ImportBatchNorm(NetBuilder& net, const ImportNode& node) {
  const int x = net.BlobOf(node, 0);
  const Dims dims = net.DimsOf(x);
  if (dims.size() < 2) net.graph().Refuse(node, "its input has no channels");
  if (node.Int("training_mode", 0) != 0) {
    net.graph().Refuse(node, "it is in training mode; export the model after model.eval()");
  }
  const int64_t channels = dims[1];
  const NetBuilder::NewLayer norm = net.AddUnary(node, "BatchNorm", x);
  caffe::BatchNormParameter* const param = norm.layer->mutable_batch_norm_param();
  const float eps = node.Float("epsilon", 1e-5f);
  if (eps != 1e-5f) param->set_eps(eps);
  // ONNX's momentum weighs the past averages, so it is Caffe's moving_average_fraction. Caffe's
  // default is 0.999.
  param->set_moving_average_fraction(node.Float("momentum", 0.9f));
  net.AddWeight(node, norm, {channels}, WeightsOf(net, node, 3, channels));
  net.AddWeight(node, norm, {channels}, WeightsOf(net, node, 4, channels));
  net.AddWeight(node, norm, {1}, std::vector<float>{1});
  const NetBuilder::NewLayer scale = net.AddUnary(node, "Scale", norm.top, "scale");
  scale.layer->mutable_scale_param()->set_bias_term(true);
  AddLine(net, node, scale, {channels}, WeightsOf(net, node, 1, channels),
          WeightsOf(net, node, 2, channels));
  net.SetOutput(node, 0, scale.top);
}

void ImportLayerNorm(NetBuilder& net, const ImportNode& node) {
  const ImportGraph& graph = net.graph();
  const int x = net.BlobOf(node, 0);
  const Dims dims = net.DimsOf(x);
  const int axis = AxisOf(graph, node, node.Int("axis", -1), dims.size());
  if (graph.IsUsed(node, 1) || graph.IsUsed(node, 2)) {
    graph.Refuse(node, "its mean or deviation is used; a LayerNorm layer does not give them");
  }
  const NetBuilder::NewLayer norm = net.Add(node, "LayerNorm", {x}, dims);
  caffe::LayerNormParameter* const param = norm.layer->mutable_layer_norm_param();
  if (axis != 1) param->set_axis(axis);
  const float eps = node.Float("epsilon", 1e-5f);
  if (eps != 1e-5f) param->set_eps(eps);
  if (node.Input(1) < 0) {
    param->set_scale_bias(false);
    return net.SetOutput(node, 0, norm.top);
  }
  const Dims normalized(dims.begin() + axis, dims.end());
  const int64_t count = CountOf(normalized);
  const std::vector<float> scale = WeightsOf(net, node, 1, count);
  AddLine(
      net, node, norm, normalized, scale,
      node.Input(2) < 0 ? std::vector<float>(scale.size(), 0.0f) : WeightsOf(net, node, 2, count));
  net.SetOutput(node, 0, norm.top);
}

// Returns one number for each channel from an input that has one for each channel or group.
std::vector<float> PerChannel(const NetBuilder& net, const ImportNode& node, size_t input,
                              int64_t channels, int64_t groups) {
  const Constant* const constant = net.graph().ConstantOf(node.Input(input));
  const bool by_group =
      constant != nullptr && static_cast<int64_t>(constant->Count()) == groups && groups > 0;
  const std::vector<float> given = WeightsOf(net, node, input, by_group ? groups : channels);
  if (given.size() == static_cast<size_t>(channels)) return given;
  CheckMadeNumbers(net, node, channels);
  std::vector<float> all;
  for (int64_t c = 0; c < channels; ++c) {
    all.push_back(given[static_cast<size_t>(c / (channels / groups))]);
  }
  return all;
}

// Imports InstanceNormalization as well, which normalizes each channel as a group of its own.
void ImportGroupNorm(NetBuilder& net, const ImportNode& node) {
  const int x = net.BlobOf(node, 0);
  const Dims dims = net.DimsOf(x);
  const int64_t channels = dims.size() < 2 ? 0 : dims[1];
  const int64_t groups = node.op == "GroupNormalization" ? node.Int("num_groups", 1) : channels;
  if (groups < 1 || channels % groups != 0) {
    net.graph().Refuse(node, Join(groups, " groups do not divide its ", channels, " channels"));
  }
  const NetBuilder::NewLayer norm = net.Add(node, "GroupNorm", {x}, dims);
  caffe::GroupNormParameter* const param = norm.layer->mutable_group_norm_param();
  param->set_groups(static_cast<uint32_t>(groups));
  const float eps = node.Float("epsilon", 1e-5f);
  if (eps != 1e-5f) param->set_eps(eps);
  AddLine(net, node, norm, {channels}, PerChannel(net, node, 1, channels, groups),
          PerChannel(net, node, 2, channels, groups));
  net.SetOutput(node, 0, norm.top);
}

void ImportLrn(NetBuilder& net, const ImportNode& node) {
  const int x = net.BlobOf(node, 0);
  const int64_t size = node.Int("size", 0);
  if (size < 1 || size % 2 == 0 || net.DimsOf(x).size() != 4) {
    net.graph().Refuse(node, Join("a size of ", size, " for the input ", DimsText(net.DimsOf(x)),
                                  " has no LRN layer, which needs images and an odd size"));
  }
  const NetBuilder::NewLayer norm = net.Add(node, "LRN", {x}, Dims(net.DimsOf(x)));
  caffe::LRNParameter* const param = norm.layer->mutable_lrn_param();
  param->set_local_size(static_cast<uint32_t>(size));
  param->set_alpha(node.Float("alpha", 1e-4f));
  param->set_beta(node.Float("beta", 0.75f));
  param->set_k(node.Float("bias", 1));
  net.SetOutput(node, 0, norm.top);
}

void ImportMvn(NetBuilder& net, const ImportNode& node) {
  const int x = net.BlobOf(node, 0);
  const Dims given = node.Ints("axes"), axes = given.empty() ? Dims{0, 2, 3} : given;
  const bool across = axes == Dims{1, 2, 3};
  if (net.DimsOf(x).size() != 4 || (!across && axes != Dims{2, 3})) {
    net.graph().Refuse(node, Join("the mean over the axes ", DimsText(axes),
                                  " has no layer; MVN normalizes each item by itself"));
  }
  const NetBuilder::NewLayer norm = net.AddUnary(node, "MVN", x);
  if (across) norm.layer->mutable_mvn_param()->set_across_channels(true);
  net.SetOutput(node, 0, norm.top);
}

// Scales vectors along the channels to length 1.
void ImportLpNorm(NetBuilder& net, const ImportNode& node) {
  const int x = net.BlobOf(node, 0);
  const Dims dims = net.DimsOf(x);
  const int axis = AxisOf(net.graph(), node, node.Int("axis", -1), dims.size());
  if (node.Int("p", 2) != 2 || axis != 1) {
    net.graph().Refuse(node, "only lengths (p 2) along axis 1 have a layer, Normalize");
  }
  const NetBuilder::NewLayer norm = net.Add(node, "Normalize", {x}, dims);
  norm.layer->mutable_norm_param()->set_across_spatial(false);
  net.AddWeight(node, norm, {}, std::vector<float>{1});
  net.KeepWeights(norm, 1);
  net.SetOutput(node, 0, norm.top);
}

}  // namespace

void AddNormImporters(NodeImporters* all) {
  (*all)["BatchNormalization"] = ImportBatchNorm;
  (*all)["LayerNormalization"] = ImportLayerNorm;
  (*all)["InstanceNormalization"] = (*all)["GroupNormalization"] = ImportGroupNorm;
  (*all)["LRN"] = ImportLrn;
  (*all)["MeanVarianceNormalization"] = ImportMvn;
  (*all)["LpNormalization"] = ImportLpNorm;
}

}  // namespace trainer
