#pragma once
// Calls of a device that are queued once and then again and again, each time at the price of one.

#include <functional>
#include <memory>

#include "trainer/backend/device/device.h"

namespace trainer {

// What was recorded, with the addresses and numbers of that time. The device must outlive it. One
// thread.
class CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;
  // Queues all of it.
  virtual void Launch() = 0;
  // Kernels, copies and fills, and marks.
  virtual int NumOperations() const = 0;
};

// A point in what is recorded. The device comes to it in each play, before the rest is done.
class CapturedEvent {
 public:
  virtual ~CapturedEvent() = default;
  // While the device records: behind what was queued so far.
  virtual void Record() = 0;
  // One whose Start, called right behind CapturedGraph::Launch, copies what is there at the mark of
  // that play, beside what follows it. What is queued afterwards finds it copied. The mark must
  // outlive it.
  virtual std::unique_ptr<AsyncReadback> NewReadback() = 0;
};

// See Device::capture.
class GraphCapture {
 public:
  virtual ~GraphCapture() = default;
  // What `queue` calls of this device, recorded and not done. It must neither wait for the device
  // nor allocate of it nor copy between it and the host: throws what the device says of that, or
  // what `queue` throws, and records nothing then.
  virtual std::unique_ptr<CapturedGraph> Capture(const std::function<void()>& queue) const = 0;
  virtual std::unique_ptr<CapturedEvent> NewEvent() const = 0;
};

}  // namespace trainer
