#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "export/layer_export.h"
#include "trainer/net/net.h"

namespace trainer {

// Returns a parameter of the net.
FloatArray ReadWeights(const Net& net, const Param& param);

// Finds BatchNorm, Scale and Bias layers that the preceding layer can compute instead. This
// preceding layer is a convolution, an inner product, or a BatchNorm with stored statistics, and no
// other layer reads its output.
class AffineFolding {
 public:
  // `kept` lists values that must exist in the graph, because they are outputs of the file.
  void Plan(const Graph& graph, const std::set<ValueId>& kept);

  // Returns the layers that are folded into `node`, in order.
  const std::vector<NodeId>& FollowersOf(NodeId node) const;
  // Returns whether the layer is folded into another layer.
  bool IsFolded(NodeId node) const { return folded_.contains(node); }

  // Returns the single factor and shift that equal these layers in sequence.
  static ChannelAffine Combine(const Net& net, const std::vector<NodeId>& layers);

 private:
  std::map<NodeId, std::vector<NodeId>> followers_;
  std::set<NodeId> folded_;
};

// Returns whether a BatchNorm uses its stored statistics in phase TEST.
bool UsesStoredStatistics(const LayerSpec& spec);
// A BatchNorm that does not learn scale and bias has three parameters: mean, variance, factor.
inline constexpr size_t kMeanVarianceFactor = 3;
// Returns the epsilon of a BatchNorm with `params` parameters.
float EpsilonOf(const LayerSpec& spec, size_t params);

}  // namespace trainer
