#pragma once

#include <functional>
#include <span>

namespace trainer {

// The all-reduce that a layer of a training net may use: sums over the replicas that train the same
// model.
struct AllReduceFn {
  int count = 1;  // number of replicas; 1 if the run has one
  // Replaces each number, in host memory, by its sum over all replicas. The results are equal bit
  // for bit on all of them. The call is collective: all replicas must make the same calls in the
  // same order, so call it only in Forward or Backward of a layer that each replica runs in each
  // pass.
  std::function<void(std::span<float>)> sum;
};

}  // namespace trainer
