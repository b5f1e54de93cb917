#include "trainer/net/learning.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "execute/bindings.h"
#include "trainer/base/text/text.h"
#include "trainer/net/graph.h"

namespace trainer {
namespace {

// Counts the parameters of a net for which `counts` is true, and their layers and weights.
template <class Predicate>
LearningCount CountParams(const Net& net, Predicate counts) {
  LearningCount count;
  std::set<std::string> layers;
  for (const Param* param : net.params()) {
    if (!counts(*param)) continue;
    layers.insert(param->layer);
    ++count.params;
    count.weights += param->count();
  }
  count.layers = std::ssize(layers);
  return count;
}

}  // namespace

bool HasLoss(const Net& net) {
  return std::ranges::any_of(net.graph().values,
                             [](const Value& value) { return value.loss_weight != 0; });
}

std::vector<const Param*> UntrainedParams(const Net& net) {
  std::vector<const Param*> params;
  for (const Param* param : net.params()) {
    if (param->lr_mult != 0 && param->final_grad_node >= net.graph().nodes.size())
      params.push_back(param);
  }
  return params;
}

LearningCount LearningCounts(const Net& net) {
  return CountParams(net, [](const Param& param) { return param.grad != nullptr; });
}

LearningCount LearnableCounts(const Net& net) {
  return CountParams(net, [](const Param& param) { return param.is_learnable; });
}

std::vector<std::string> FrozenLayers(const Net& net) {
  std::vector<std::string> names;
  for (const Node& node : net.graph().nodes) {
    const bool is_frozen = std::ranges::any_of(node.params, &Param::is_frozen);
    if (is_frozen) names.push_back(node.spec.name());
  }
  return names;
}

std::string DescribeLearning(const Net& net) {
  const LearningCount all = LearnableCounts(net);
  const LearningCount learning = LearningCounts(net);
  std::string text = Join(learning.layers, " of ", all.layers, " layers learn, ", learning.weights,
                          " of ", all.weights, " weights");
  const std::vector<std::string> frozen = FrozenLayers(net);
  if (!frozen.empty()) text += Join("; frozen: ", FirstNames(frozen));
  return text;
}

std::vector<std::string> LayersWithoutAverages(const Net& net) {
  constexpr size_t kFactor = 2;  // third parameter: the sum of the weights of the averages
  std::vector<std::string> names;
  for (const Node& node : net.graph().nodes) {
    const caffe::BatchNormParameter& param = node.spec.proto().batch_norm_param();
    const NetOptions& options = net.graph().options;
    const bool frozen = node.spec.proto().freeze() && options.keeps_frozen;
    const bool stored =
        frozen || (param.has_use_global_stats() ? param.use_global_stats() : !options.training);
    if (node.spec.type() != "BatchNorm" || !stored || node.params.size() <= kFactor) continue;
    float factor = 0;
    net.device().CopyToHost(&factor, node.params[kFactor]->weight, sizeof(factor));
    if (factor == 0) names.push_back(node.spec.name());
  }
  return names;
}

}  // namespace trainer
