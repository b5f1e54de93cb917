#include "export/affine_folding.h"

#include <algorithm>
#include <cmath>

namespace trainer {
namespace {

// Returns whether the layer's output can be multiplied per channel by changing its parameters.
bool IsFoldingHead(const Graph& graph, const Node& node) {
  const caffe::LayerParameter& proto = node.spec.proto();
  if (node.in.size() != 1 || node.out.size() != 1) return false;
  const int rank = graph.values[node.out[0]].shape.Rank();
  const std::string& type = proto.type();
  if (type == "BatchNorm") return UsesStoredStatistics(node.spec);
  if (type == "InnerProduct") return rank == 2;
  if (type == "Convolution" || type == "ConvolutionDepthwise" || type == "DepthwiseConvolution" ||
      type == "Deconvolution") {
    const int axis = proto.convolution_param().axis();
    return rank > 1 && (axis == 1 || axis == 1 - rank);
  }
  return false;
}

// Returns whether the layer multiplies channels by constants and adds constants.
bool IsChannelAffine(const Graph& graph, const Node& node) {
  if (node.in.size() != 1 || node.out.size() != 1) return false;
  const std::string& type = node.spec.type();
  if (type == "BatchNorm") return UsesStoredStatistics(node.spec);
  if (type != "Scale" && type != "Bias") return false;
  const Shape& shape = graph.values[node.in[0]].shape;
  const int axis = type == "Scale" ? node.spec.proto().scale_param().axis()
                                   : node.spec.proto().bias_param().axis();
  return shape.Rank() > 1 && shape.CanonicalAxis(axis) == 1 && !node.params.empty() &&
         node.params[0]->shape == Shape{shape[1]};
}

// Appends a second step: y = (x * a.factor + a.shift) * factor + shift.
void Append(const std::vector<double>& factor, const std::vector<double>& shift, ChannelAffine* a) {
  for (size_t c = 0; c < factor.size(); ++c) {
    a->factor[c] *= factor[c];
    a->shift[c] = a->shift[c] * factor[c] + shift[c];
  }
}

std::vector<double> Doubles(const FloatArray& array) {
  return {array.values.begin(), array.values.end()};
}

}  // namespace

FloatArray ReadWeights(const Net& net, const Param& param) {
  FloatArray array;
  array.dims.assign(param.shape.dims().begin(), param.shape.dims().end());
  array.values.resize(static_cast<size_t>(param.count()));
  net.store().Export(param, param.weight, array.values);
  return array;
}

bool UsesStoredStatistics(const LayerSpec& spec) {
  const caffe::BatchNormParameter& param = spec.proto().batch_norm_param();
  return !param.has_use_global_stats() || param.use_global_stats() || spec.proto().freeze();
}

float EpsilonOf(const LayerSpec& spec, size_t params) {
  const float eps = spec.proto().batch_norm_param().eps();
  return params > kMeanVarianceFactor ? std::max(eps, 1e-5f) : eps;
}

void AffineFolding::Plan(const Graph& graph, const std::set<ValueId>& kept) {
  for (const NodeId id : graph.nodes.Ids()) {
    if (IsFolded(id) || !IsFoldingHead(graph, graph.nodes[id])) continue;
    NodeId last = id;
    for (;;) {
      const ValueId out = graph.nodes[last].out[0];
      const std::vector<NodeId>& readers = graph.values[out].consumers;
      if (readers.size() != 1 || kept.contains(out)) break;
      if (!IsChannelAffine(graph, graph.nodes[readers[0]])) break;
      last = readers[0];
      followers_[id].push_back(last);
      folded_.insert(last);
    }
  }
}

const std::vector<NodeId>& AffineFolding::FollowersOf(NodeId node) const {
  static const std::vector<NodeId> kNone;
  const auto found = followers_.find(node);
  return found == followers_.end() ? kNone : found->second;
}

ChannelAffine AffineFolding::Combine(const Net& net, const std::vector<NodeId>& layers) {
  ChannelAffine all;
  for (const NodeId id : layers) {
    const Node& node = net.graph().nodes[id];
    std::vector<std::vector<double>> params;
    for (const Param* param : node.params) params.push_back(Doubles(ReadWeights(net, *param)));
    const size_t channels = params[0].size();
    if (all.factor.empty()) all = {std::vector<double>(channels, 1), std::vector<double>(channels)};
    const std::vector<double> ones(channels, 1), zeros(channels, 0);
    if (node.spec.type() == "Bias") {
      Append(ones, params[0], &all);
    } else if (node.spec.type() == "Scale") {
      Append(params[0], params.size() > 1 ? params[1] : zeros, &all);
    } else {
      const double weight = params[2][0] == 0 ? 0 : 1 / params[2][0];
      const double eps = EpsilonOf(node.spec, node.params.size());
      std::vector<double> factor(channels), shift(channels);
      for (size_t c = 0; c < channels; ++c) {
        factor[c] = 1 / std::sqrt(params[1][c] * weight + eps);
        shift[c] = -params[0][c] * weight * factor[c];
      }
      Append(factor, shift, &all);
      if (params.size() > kMeanVarianceFactor) Append(params[3], params[4], &all);
    }
  }
  return all;
}

}  // namespace trainer
