// Captures forward and backward as one graph of the device.

#include <glog/logging.h>

#include <utility>

#include "execute/dynamic_shapes.h"
#include "trainer/backend/device/graph_capture.h"
#include "trainer/base/text/text.h"

namespace trainer {

// Passes with fixed shapes are identical except for layers that work on the host. After the last
// such layer only values in device memory differ between passes, so all later nodes can be
// captured.
void Net::SplitHostNodes() {
  captures_ = options_.capture && runs_ahead_ && !options_.allow_reevaluation &&
              device_.capture() != nullptr;
  if (!captures_) return;
  for (const NodeId id : graph_->nodes.Ids()) {
    if (graph_->nodes[id].signature.runs_on_host) first_captured_ = id.number + 1;
  }
}

bool Net::Captures() const { return captures_ && hooks_.empty(); }

void Net::DisableCapture(const std::string& why) {
  if (captures_)
    LOG(INFO) << "Passes of net '" << name() << "' are not recorded as a CUDA graph: " << why;
  captures_ = false;
}

// Returns the entry for passes of this kind, or null if the pass is not captured. The first pass of
// each kind runs eagerly: libraries allocate memory and load kernels in it, and a communicator
// learns its buckets.
Net::CapturedPass* Net::CaptureFor(const Pass& pass) {
  if (pass.mode != Pass::Mode::kBoth || pass.batch != NetBatch::kNext || !Captures())
    return nullptr;
  if (pass.gradients != nullptr && !pass.gradients->SumsCapturedPasses()) return nullptr;
  CapturedPass& kept = pass.gradients != nullptr      ? captured_with_sums_
                       : pass.fused_update != nullptr ? captured_with_update_
                                                      : captured_pass_;
  return std::exchange(kept.warmed_up, true) ? &kept : nullptr;
}

void Net::RunCaptured(const Pass& pass, CapturedPass& captured) {
  BeginPass();
  for (int i = 0; i < first_captured_; ++i) ForwardNode(NodeId(i));
  if (captured.recording == nullptr) captured.recording = Capture(pass);
  const bool plays = captured.recording != nullptr;
  plays ? captured.recording->Launch() : RunIdentical(pass, nullptr);
  bindings_->results().StartReadback(true, plays && pass.gradients != nullptr);
  if (plays && pass.gradients != nullptr) pass.gradients->OnReplay();
}

// Enqueues the part of a pass that is the same each time. With a gradient sink, losses are
// all-reduced, too, and published after the forward pass; `losses`, if not null, is recorded there.
void Net::RunIdentical(const Pass& pass, CapturedEvent* losses) {
  PassResults& results = bindings_->results();
  for (int i = first_captured_; i < graph_->nodes.size(); ++i) ForwardNode(NodeId(i));
  results.QueueLosses(bindings_->losses());
  if (pass.gradients != nullptr) results.Publish(false);
  if (losses != nullptr) losses->Record();
  RunBackward(pass.gradients);
  if (pass.fused_update != nullptr) (*pass.fused_update)();
  pass.gradients != nullptr ? results.AdvancePassCounter() : results.Publish(true);
}

// A net that cannot be recorded, whatever the reason, trains without that: null.
std::unique_ptr<CapturedGraph> Net::Capture(const Pass& pass) {
  GradientSink* const sink = pass.gradients;
  const GraphCapture& capture = *device_.capture();
  std::unique_ptr<CapturedGraph> recording;
  try {
    CapturedEvent* const losses =
        sink == nullptr ? nullptr : bindings_->results().EventAfterLosses(capture);
    if (sink != nullptr) sink->BeginCapture();
    recording = capture.Capture([&] {
      RunIdentical(pass, losses);
      if (sink != nullptr) sink->EndCapture();
    });
  } catch (const Error& error) {
    if (sink != nullptr) sink->DropCapture();
    LOG(WARNING) << "Passes of net '" << name()
                 << "' are not recorded as a CUDA graph: " << error.what();
    captures_ = false;
    return nullptr;
  }
  auto first = graph_->nodes.begin() + first_captured_;
  const auto end = graph_->nodes.end();
  while (first != end && first->spec.type() == "Split") ++first;  // which no user wrote
  const std::string from = first != end ? Join("layer '", first->spec.name(), "'") : "backward";
  LOG(INFO) << "Recorded a " << (pass.fused_update == nullptr ? "pass" : "step") << " of net '"
            << name() << "' from " << from << " on as a CUDA graph: " << recording->NumOperations()
            << " kernels, copies"
            << (sink == nullptr ? " and fills" : ", fills and markers for the sums of gradients")
            << " start with one call";
  return recording;
}

}  // namespace trainer
