#pragma once
// The progress engine: carries out a rank's all-reduces one after the other, in the order of
// Submit.

#include <cstdint>
#include <span>

namespace trainer {

// Used by the training thread.
class ProgressEngine {
 public:
  virtual ~ProgressEngine() = default;
  // Queues an all-reduce in place. The caller does not touch the values until it is done.
  virtual void Submit(std::span<float> values) = 0;
  // Continues the all-reduces as far as it can without waiting.
  virtual void Poll() = 0;
  // Returns when the first `count` all-reduces of all that were submitted are done. Throws
  // PeerFailed.
  virtual void WaitFor(uint64_t count) = 0;
  // Returns the nanoseconds in which another thread reduced while the training thread did not wait
  // for it.
  virtual int64_t OverlappedNs() const { return 0; }
};

}  // namespace trainer
