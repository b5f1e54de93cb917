#pragma once
// Calls of a device that are queued once and then again and again, each time at the price of one.

#include <functional>
#include <memory>

#include "trainer/backend/device.h"

namespace trainer {

// What was recorded, with the addresses and numbers of that time. The device must outlive it. One
// thread.
class Recording {
 public:
  virtual ~Recording() = default;
  // Queues all of it.
  virtual void Play() = 0;
  // Kernels, copies and fills.
  virtual int NumOperations() const = 0;
};

// What a device also is that records.
class Recorder {
 public:
  virtual ~Recorder() = default;
  // Whether it shall: an option of the device.
  virtual bool Records() const = 0;
  // What `queue` calls of this device, recorded and not done. It must neither wait for the device
  // nor allocate of it nor copy between it and the host: throws what the device says of that, or
  // what `queue` throws, and records nothing then.
  virtual std::unique_ptr<Recording> Record(const std::function<void()>& queue) const = 0;
};

// Null for a device that does not record.
inline const Recorder* RecorderOf(const Device& device) {
  const auto* const recorder = dynamic_cast<const Recorder*>(&device);
  return recorder != nullptr && recorder->Records() ? recorder : nullptr;
}

}  // namespace trainer
