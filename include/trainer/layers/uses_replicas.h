#pragma once

#include <functional>
#include <span>

namespace trainer {

// Connects a layer of a training net to the replicas that train the same model. The only operation
// is a sum.
struct AllReduceFn {
  int count = 1;  // number of replicas; 1: no others
  // Replaces each number, on the host, by its sum over all replicas; all get equal bits. All
  // replicas must make the same calls: in Forward or Backward of a layer that each replica runs in
  // each pass.
  std::function<void(std::span<float>)> sum;
};

// Interface of layers that need sums over the batches of all replicas. All batches have the same
// size.
class UsesReplicas {
 public:
  virtual ~UsesReplicas() = default;
  // Called before the first pass. Not called in a net that does not train, or if the size of the
  // input may change, because then not every replica runs the layer; the layer then uses its own
  // batch alone.
  virtual void UseReplicas(const AllReduceFn& replicas) = 0;
  // Valid after Setup: returns the reason why the layer needs UseReplicas, for the error where it
  // cannot be called; "" if it does not.
  virtual const char* WhyItNeedsThem() const { return ""; }
};

}  // namespace trainer
