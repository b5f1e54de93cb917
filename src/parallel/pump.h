#pragma once
// Who carries the sums of a rank out, one after the other in the order in which they were asked
// for.

#include <cstdint>
#include <span>

namespace trainer {

// Used by the thread that trains.
class Pump {
 public:
  virtual ~Pump() = default;
  // Another sum, in place; nobody touches the values until it is done.
  virtual void Push(std::span<float> values) = 0;
  // Goes on with what can be done without waiting.
  virtual void Poll() = 0;
  // Returns when the first `count` sums of all that were pushed are done. Throws EndedByPeer.
  virtual void WaitFor(uint64_t count) = 0;
  // Nanoseconds in which a thread of its own made sums while the other one did not wait for them.
  virtual int64_t HiddenNs() const { return 0; }
};

}  // namespace trainer
