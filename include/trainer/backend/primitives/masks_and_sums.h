#pragma once

#include "trainer/backend/device/device.h"

namespace trainer {

// Implemented by a device that computes the gradient of a ReLU and of the bias before it in one
// pass over memory.
class MasksAndSums {
 public:
  virtual ~MasksAndSums() = default;
  // Sets g = dy where y > 0, else 0, and adds the sum of g over channel c to to[c]. g may be dy;
  // dy, y and g have the same type and shape, `to` is f32. Returns false and does nothing if these
  // channels need two passes.
  virtual bool ReluGradAndBiasGrad(const ChannelSumsDesc& desc, const ConstTensor& dy,
                                   const ConstTensor& y, const Tensor& g, float* to) const = 0;
};

}  // namespace trainer
