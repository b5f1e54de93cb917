#pragma once

#include <memory>
#include <string>

#include "trainer/net/net.h"

namespace trainer {

class CapturedGraph;
class PassResults;

// Captures passes of a net as graphs of the device, one for each kind of pass, and launches them.
// Passes with fixed shapes are identical except for layers that work on the host. After the last
// such layer only values in device memory differ between passes, so all later nodes are captured.
class CaptureCache {
 public:
  // `net` must outlive the object, run ahead and be on a device with capture().
  explicit CaptureCache(Net& net);
  ~CaptureCache();
  CaptureCache(const CaptureCache&) = delete;
  CaptureCache& operator=(const CaptureCache&) = delete;

  // Runs a pass. Does nothing and returns false for a pass that is not captured. The first pass of
  // each kind is not captured: libraries allocate memory and load kernels in it, and a communicator
  // learns its buckets.
  bool Run(const Pass& pass);

  // No pass is captured from here on, since `why`. Logs that the first time.
  void Disable(const std::string& why);

 private:
  struct Kind {
    bool warmed_up = false;  // a pass of this kind was made
    std::unique_ptr<CapturedGraph> graph;
  };
  bool RunWithSums(GradientSink& sink);
  bool RunAndPublish(Kind& kind, const char* what, const std::function<void()>& update);
  bool BeginPass(Kind& kind);
  void QueueForward();
  using MakeGraph = std::function<std::unique_ptr<CapturedGraph>()>;
  std::unique_ptr<CapturedGraph> Capture(const char* what, const char* operations,
                                         const MakeGraph& make);
  PassResults& results() const;

  Net& net_;
  bool enabled_ = true;
  int first_captured_ = 0;  // node
  // A pass alone, with a fused update, and with a gradient sink.
  Kind alone_, with_update_, with_sums_;
};

}  // namespace trainer
