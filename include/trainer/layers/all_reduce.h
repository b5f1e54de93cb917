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

}  // namespace trainer
