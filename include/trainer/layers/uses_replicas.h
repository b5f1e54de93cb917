#pragma once

#include <functional>
#include <span>

namespace trainer {

// How a layer of a training net reaches the replicas that train the same model: all that it may ask
// for is a sum.
struct AllReduceFn {
  int count = 1;  // replicas; 1: a run alone
  // Replaces each number, on the host, by its sum over all replicas, equal on each of them bit for
  // bit. All must call alike: in Forward or Backward of a layer that each replica runs in each
  // pass.
  std::function<void(std::span<float>)> sum;
};

// What a layer also is that must know something of the batches of all replicas. These are of one
// size.
class UsesReplicas {
 public:
  virtual ~UsesReplicas() = default;
  // Before the first pass. Without it the layer knows its own batch alone: in a net that does not
  // train, and where the size of its input may change, so that not every replica runs it.
  virtual void UseReplicas(const AllReduceFn& replicas) = 0;
  // After Setup: why it must not go without, to be told where that would be; else "".
  virtual const char* WhyItNeedsThem() const { return ""; }
};

}  // namespace trainer
