#pragma once

#include <cstdint>
#include <functional>

namespace trainer {

// What a BatchNormPrimitive also is where its batch may be a part of a larger one.
class JoinsMeans {
 public:
  virtual ~JoinsMeans() = default;
  // From now on Backward calls it between its two passes, unless the moments are stored or dx is
  // not wanted: with the 2 C means over the batch, on the device, of the gradients of z * scale and
  // of their products with z. It may put those of a larger batch in their place, from which dx is
  // then computed; dscale and dshift stay those of the batch.
  virtual void SetStatsAllReduce(std::function<void(float* means, int64_t count)> join) = 0;
};

}  // namespace trainer
