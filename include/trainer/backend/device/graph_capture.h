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
  // Returns the number of kernels, copies, fills and events.
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

// See Device::capture.
class GraphCapture {
 public:
  virtual ~GraphCapture() = default;
  // Calls `queue` and captures the device calls that it makes, without running them. `queue` must
  // not wait for the device, allocate its memory or copy between device and host. Throws the
  // device's error for such a call, or what `queue` throws; nothing is captured then.
  virtual std::unique_ptr<CapturedGraph> Capture(const std::function<void()>& queue) const = 0;
  virtual std::unique_ptr<CapturedEvent> NewEvent() const = 0;
};

}  // namespace trainer
