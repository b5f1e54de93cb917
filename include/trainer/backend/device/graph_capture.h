#pragma once
// Capture and replay of device work (CUDA graphs): a sequence of calls is recorded once and then
// launched repeatedly, each time at the host cost of one call.

#include <functional>
#include <memory>

#include "trainer/backend/device/device.h"

namespace trainer {

// A recorded sequence of calls, with the addresses and arguments of the time of recording. The
// device must outlive it. Use from one thread.
class CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;
  // Queues the whole sequence.
  virtual void Launch() = 0;
  // Number of kernels, copies, fills and events.
  virtual int NumOperations() const = 0;
};

// A point within a recorded sequence. In each replay, the device reaches it before the later part
// of the sequence is done.
class CapturedEvent {
 public:
  virtual ~CapturedEvent() = default;
  // Places the event after the calls recorded so far. Call during a capture.
  virtual void Record() = 0;
  // Returns a readback for this event. Call its Start right after CapturedGraph::Launch: it copies
  // the data as of this event in that replay, while the rest of the sequence runs. Work queued
  // after Start waits for the copy. The event must outlive the readback.
  virtual std::unique_ptr<AsyncReadback> NewReadback() = 0;
};

// Implemented by a Communicator that can start its sums of gradients within a captured pass. The
// buckets are the same in each pass. In the first pass OnGradientReady announces the slices as
// usual.
class SumsCapturedPasses {
 public:
  virtual ~SumsCapturedPasses() = default;
  // From this call on, OnGradientReady is called during a capture: it records an event where the
  // gradients of a bucket are final and starts no sum.
  virtual void BeginCapture() = 0;
  // Called during the capture, after the last slice. From then on OnGradientReady starts sums
  // again.
  virtual void EndCapture() = 0;
  // Called instead of EndCapture or after it if the capture failed. Resets the state as if no slice
  // were ready.
  virtual void DropCapture() = 0;
  // Called after each launch of the captured pass: starts the sums of all its slices, each of which
  // begins when the device reaches its event. WaitGradient then waits for them as usual.
  virtual void OnReplay() = 0;
};

// Implemented by a device that can capture its calls.
class GraphCapture {
 public:
  virtual ~GraphCapture() = default;
  // Whether capture is switched on by the device's options.
  virtual bool IsEnabled() const = 0;
  // Calls `queue` and records its calls of this device without running them. `queue` must not wait
  // for the device, allocate device memory, or copy between device and host. Throws the device's
  // error for such a call, or what `queue` throws, and then records nothing.
  virtual std::unique_ptr<CapturedGraph> Capture(const std::function<void()>& queue) const = 0;
  virtual std::unique_ptr<CapturedEvent> NewEvent() const = 0;
};

// Returns null if the device cannot capture or capture is switched off.
inline const GraphCapture* CaptureOf(const Device& device) {
  const auto* const recorder = dynamic_cast<const GraphCapture*>(&device);
  return recorder != nullptr && recorder->IsEnabled() ? recorder : nullptr;
}

}  // namespace trainer
