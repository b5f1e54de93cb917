// Captures forward and backward as one graph of the device.

#include <glog/logging.h>

#include <utility>

#include "execute/dynamic_shapes.h"
#include "trainer/backend/device/graph_capture.h"
#include "trainer/base/text/text.h"
#include "trainer/layers/works_on_host.h"

namespace trainer {

// Passes with fixed shapes are identical except for layers that work on the host. After the last
// such layer only values in device memory differ between passes, so all later nodes can be
// captured.
void Net::SplitHostNodes() {
  captures_ = options_.capture && runs_ahead_ && !options_.allow_reevaluation && CaptureOf(device_);
  if (!captures_) return;
  for (int i = 0; i < NumLayers(); ++i) {
    if (dynamic_cast<WorksOnHost*>(&GetLayer(i)) != nullptr) first_captured_ = i + 1;
  }
}

bool Net::Captures() const { return captures_ && !debug_; }

void Net::DisableCapture(const std::string& why) {
  if (captures_)
    LOG(INFO) << "Passes of net '" << name_ << "' are not recorded as a CUDA graph: " << why;
  captures_ = false;
}

void Net::StartPass(GradientSink* sink, const std::function<void()>* then) {
  CapturedPass& kept = sink != nullptr   ? captured_with_sums_
                       : then != nullptr ? captured_with_update_
                                         : captured_pass_;
  auto* const sums = dynamic_cast<SumsCapturedPasses*>(sink);
  const bool can = Captures() && (sink == nullptr || sums != nullptr);
  // The first pass is not captured: libraries allocate memory, kernels are loaded and the
  // communicator learns its buckets in it.
  if (!can || !std::exchange(kept.warmed_up, true)) {
    StartForward();
    Backward(sink);
    if (then != nullptr) (*then)();
    return;
  }
  BeginPass();
  for (int i = 0; i < first_captured_; ++i) ForwardLayer(i);
  if (kept.recording == nullptr) kept.recording = Capture(sink, then);
  const bool plays = kept.recording != nullptr;
  plays ? kept.recording->Launch() : RunIdentical(sink, then, nullptr);
  bindings_->results().StartReadback(true, plays && sums != nullptr);
  if (plays && sums != nullptr) sums->OnReplay();
}

// Enqueues the part of a pass that can be captured. If gradients are reduced, losses are published
// right after forward, because they are reduced as well; `losses`, if not null, is recorded there.
void Net::RunIdentical(GradientSink* sink, const std::function<void()>* then,
                       CapturedEvent* losses) {
  PassResults& results = bindings_->results();
  for (int i = first_captured_; i < NumLayers(); ++i) ForwardLayer(i);
  results.QueueLosses(state_->losses());
  if (sink != nullptr) results.Publish(false);
  if (losses != nullptr) losses->Record();
  Backward(sink);
  if (then != nullptr) (*then)();
  sink != nullptr ? results.AdvancePassCounter() : results.Publish(true);
}

// Returns null if the pass cannot be captured, for any reason; the net then trains without capture.
std::unique_ptr<CapturedGraph> Net::Capture(GradientSink* sink, const std::function<void()>* then) {
  const GraphCapture& capture = *CaptureOf(device_);
  auto* const sums = dynamic_cast<SumsCapturedPasses*>(sink);
  std::unique_ptr<CapturedGraph> recording;
  try {
    CapturedEvent* const losses =
        sums == nullptr ? nullptr : bindings_->results().EventAfterLosses(capture);
    if (sums != nullptr) sums->BeginCapture();
    recording = capture.Capture([&] {
      RunIdentical(sink, then, losses);
      if (sums != nullptr) sums->EndCapture();
    });
  } catch (const Error& error) {
    if (sums != nullptr) sums->DropCapture();
    LOG(WARNING) << "Passes of net '" << name_
                 << "' are not recorded as a CUDA graph: " << error.what();
    captures_ = false;
    return nullptr;
  }
  int first = first_captured_;
  while (first < NumLayers() && LayerAt(first).type() == "Split") ++first;  // not in the file
  const std::string from =
      first < NumLayers() ? Join("layer '", LayerAt(first).name(), "'") : "backward";
  LOG(INFO) << "Recorded a " << (then == nullptr ? "pass" : "step") << " of net '" << name_
            << "' from " << from << " on as a CUDA graph: " << recording->NumOperations()
            << " kernels, copies"
            << (sums == nullptr ? " and fills" : ", fills and markers for the sums of gradients")
            << " start with one call";
  return recording;
}

}  // namespace trainer
