#include "trainer/net/bad_records.h"

#include <vector>

#include "trainer/layers/counts_bad_records.h"

namespace trainer {

void CountBadRecords(const Net& net, const std::function<void(std::span<float>)>& sum) {
  std::vector<CountsBadRecords*> layers;
  std::vector<float> bad;
  for (const Node& node : net.graph().nodes) {
    auto* const layer = dynamic_cast<CountsBadRecords*>(node.layer.get());
    if (layer == nullptr || !layer->SkipsBadRecords()) continue;
    layers.push_back(layer);
    bad.push_back(static_cast<float>(layer->TakeBadRecords()));
  }
  if (layers.empty()) return;
  if (sum) sum(bad);
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i]->AddBadRecords(static_cast<int64_t>(bad[i]));
  }
}

}  // namespace trainer
