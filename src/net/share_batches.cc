#include "trainer/net/share_batches.h"

#include <algorithm>

#include "program.h"

namespace trainer {
namespace {

bool CanBeShared(const Net& net, StepId id) {
  const StepInfo& step = net.graph().steps[id];
  const Layer* const layer = step.layer.get();
  if (step.shapes_vary || step.said.state_bytes > 0) return false;
  if (step.spec.proto().phase() != caffe::TEST) return false;  // a BatchNorm moves its averages
  if (dynamic_cast<const FileWriter*>(layer) != nullptr) return false;
  return layer->SaveState().empty() || dynamic_cast<const TakesShare*>(layer) != nullptr;
}

}  // namespace

bool ShareBatches(Net& net, const TestShard& share) {
  const auto ids = net.graph().steps.Ids();
  const auto can = [&](StepId id) { return CanBeShared(net, id); };
  if (net.training() || !std::ranges::all_of(ids, can)) return false;
  if (share.rank < share.period) ShareData(net, share);
  return true;
}

void ShareData(Net& net, const TestShard& share) {
  for (const StepInfo& step : net.graph().steps) {
    auto* const source = dynamic_cast<TakesShare*>(step.layer.get());
    if (source != nullptr) source->TakeShare(share);
  }
}

}  // namespace trainer
