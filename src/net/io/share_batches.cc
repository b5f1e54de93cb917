#include "trainer/net/share_batches.h"

#include <algorithm>

#include "execute/bindings.h"

namespace trainer {
namespace {

bool CanBeShared(const Net& net, NodeId id) {
  const Node& node = net.graph().nodes[id];
  const Layer* const layer = node.layer.get();
  if (node.has_dynamic_shape || node.signature.state_bytes > 0) return false;
  if (node.spec.proto().phase() != caffe::TEST) return false;  // a BatchNorm moves its averages
  if (node.signature.writes_files) return false;
  return layer->SaveState().empty() || dynamic_cast<const TakesShare*>(layer) != nullptr;
}

}  // namespace

bool ShareBatches(Net& net, const TestShard& share) {
  const auto ids = net.graph().nodes.Ids();
  const auto can = [&](NodeId id) { return CanBeShared(net, id); };
  if (net.graph().options.training || !std::ranges::all_of(ids, can)) return false;
  if (share.rank < share.period) ShareData(net, share);
  return true;
}

void ShareData(Net& net, const TestShard& share) {
  for (const Node& node : net.graph().nodes) {
    auto* const source = dynamic_cast<TakesShare*>(node.layer.get());
    if (source != nullptr) source->TakeShare(share);
  }
}

}  // namespace trainer
