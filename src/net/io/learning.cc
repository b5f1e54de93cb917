#include "trainer/net/learning.h"

#include <algorithm>

#include "execute/bindings.h"
#include "trainer/net/graph.h"

namespace trainer {

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

std::vector<std::string> LayersWithoutAverages(const Net& net) {
  constexpr size_t kFactor = 2;  // third parameter: the sum of the weights of the averages
  std::vector<std::string> names;
  for (const Node& node : net.graph().nodes) {
    const caffe::BatchNormParameter& param = node.spec.proto().batch_norm_param();
    const bool stored =
        param.has_use_global_stats() ? param.use_global_stats() : !net.graph().options.training;
    if (node.spec.type() != "BatchNorm" || !stored || node.params.size() <= kFactor) continue;
    float factor = 0;
    net.device().CopyToHost(&factor, node.params[kFactor]->weight, sizeof(factor));
    if (factor == 0) names.push_back(node.spec.name());
  }
  return names;
}

}  // namespace trainer
