#include "execute/capture_cache.h"

#include <glog/logging.h>

#include <utility>

#include "execute/bindings.h"
#include "trainer/backend/device/graph_capture.h"
#include "trainer/base/text/text.h"

namespace trainer {

CaptureCache::CaptureCache(Net& net) : net_(net) {
  for (const NodeId id : net.graph().nodes.Ids()) {
    if (net.graph().nodes[id].signature.runs_on_host) first_captured_ = id.number + 1;
  }
}

CaptureCache::~CaptureCache() = default;

PassResults& CaptureCache::results() const { return net_.bindings_->results(); }

void CaptureCache::Disable(const std::string& why) {
  if (std::exchange(enabled_, false)) {
    LOG(INFO) << "Passes of net '" << net_.graph().name
              << "' are not recorded as a CUDA graph: " << why;
  }
}

bool CaptureCache::Run(const Pass& pass) {
  if (!enabled_ || pass.mode != Pass::Mode::kBoth || pass.batch != Pass::Batch::kNext) return false;
  if (pass.gradients != nullptr) {
    return pass.gradients->SumsCapturedPasses() && RunWithSums(*pass.gradients);
  }
  if (pass.fused_update != nullptr) return RunAndPublish(with_update_, "step", *pass.fused_update);
  return RunAndPublish(alone_, "pass", [] {});
}

bool CaptureCache::RunAndPublish(Kind& kind, const char* what,
                                 const std::function<void()>& update) {
  if (!BeginPass(kind)) return false;
  const auto queue = [&] {
    QueueForward();
    net_.RunBackward(nullptr);
    update();
    results().Publish(true);
  };
  if (kind.graph == nullptr) {
    kind.graph = Capture(what, "kernels, copies and fills",
                         [&] { return net_.device().capture()->Capture(queue); });
  }
  kind.graph != nullptr ? kind.graph->Launch() : queue();
  results().StartReadback(true);
  return true;
}

// Losses are all-reduced, too, so they are published after the forward pass and read from there.
bool CaptureCache::RunWithSums(GradientSink& sink) {
  if (!BeginPass(with_sums_)) return false;
  const auto queue = [&](CapturedEvent* after_losses) {
    QueueForward();
    results().Publish(false);
    if (after_losses != nullptr) after_losses->Record();
    net_.RunBackward(&sink);
    results().AdvancePassCounter();
  };
  const auto capture = [&] {
    const GraphCapture& device = *net_.device().capture();
    try {
      CapturedEvent* const after_losses = results().EventAfterLosses(device);
      sink.BeginCapture();
      return device.Capture([&] {
        queue(after_losses);
        sink.EndCapture();
      });
    } catch (const Error&) {
      sink.DropCapture();
      throw;
    }
  };
  std::unique_ptr<CapturedGraph>& graph = with_sums_.graph;
  if (graph == nullptr) {
    graph =
        Capture("pass", "kernels, copies, fills and markers for the sums of gradients", capture);
  }
  graph != nullptr ? graph->Launch() : queue(nullptr);
  results().StartReadback(true, graph != nullptr);
  if (graph != nullptr) sink.OnReplay();
  return true;
}

// Runs what comes before the capture. Returns false for the first pass of its kind.
bool CaptureCache::BeginPass(Kind& kind) {
  if (!std::exchange(kind.warmed_up, true)) return false;
  results().Begin(net_.passes_++);
  for (int i = 0; i < first_captured_; ++i) net_.RunNode(NodeId(i), Direction::kForward);
  return true;
}

void CaptureCache::QueueForward() {
  for (int i = first_captured_; i < net_.graph().nodes.size(); ++i) {
    net_.RunNode(NodeId(i), Direction::kForward);
  }
  results().QueueLosses(net_.bindings_->losses());
}

// A net that cannot be captured, whatever the reason, trains without that: null.
std::unique_ptr<CapturedGraph> CaptureCache::Capture(const char* what, const char* operations,
                                                     const MakeGraph& make) {
  std::unique_ptr<CapturedGraph> graph;
  try {
    graph = make();
  } catch (const Error& error) {
    LOG(WARNING) << "Passes of net '" << net_.graph().name
                 << "' are not recorded as a CUDA graph: " << error.what();
    enabled_ = false;
    return nullptr;
  }
  auto first = net_.graph().nodes.begin() + first_captured_;
  const auto end = net_.graph().nodes.end();
  while (first != end && first->spec.type() == "Split") ++first;  // which no user wrote
  const std::string from = first != end ? Join("layer '", first->spec.name(), "'") : "backward";
  LOG(INFO) << "Recorded a " << what << " of net '" << net_.graph().name << "' from " << from
            << " on as a CUDA graph: " << graph->NumOperations() << " " << operations
            << " start with one call";
  return graph;
}

}  // namespace trainer
