#pragma once

#include <cstdint>
#include <functional>

namespace trainer {

// Implemented by a BatchNormPrimitive whose batch may be a part of a larger batch.
class JoinsMeans {
 public:
  virtual ~JoinsMeans() = default;
  // From now on Backward calls `join` between its two passes, unless the moments are stored or dx
  // is not computed. `means` are 2 C means over this batch, on the device: of the gradients of z *
  // scale, and of their products with z. `join` may replace them by the means of a larger batch,
  // and dx is then computed from these. dscale and dshift still sum over this batch only.
  virtual void SetStatsAllReduce(std::function<void(float* means, int64_t count)> join) = 0;
};

}  // namespace trainer
