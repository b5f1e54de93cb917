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

// Finds BatchNorm, Scale and Bias layers that the layer before them can compute: a convolution, an
// inner product, or a BatchNorm with stored statistics, whose output has no other reader.
class AffineFolding {
 public:
  // `kept` are values that must exist, because they are outputs of the file.
  void Plan(const Graph& graph, const std::set<ValueId>& kept);

  // Returns the layers that `node` computes, in order.
  const std::vector<NodeId>& FollowersOf(NodeId node) const;
  // Returns whether another layer computes this one.
  bool IsFolded(NodeId node) const { return folded_.contains(node); }

  // Returns what these layers compute together.
  static ChannelAffine Combine(const Net& net, const std::vector<NodeId>& layers);

 private:
  std::map<NodeId, std::vector<NodeId>> followers_;
  std::set<NodeId> folded_;
};

// Returns whether a BatchNorm uses its stored statistics in phase TEST.
bool UsesStoredStatistics(const LayerSpec& spec);
// Parameters of a BatchNorm without scale and bias.
inline constexpr size_t kMeanVarianceFactor = 3;
// Returns the epsilon of a BatchNorm with so many parameters.
float EpsilonOf(const LayerSpec& spec, size_t params);

}  // namespace trainer
