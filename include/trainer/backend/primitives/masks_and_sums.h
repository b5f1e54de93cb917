#pragma once

#include "trainer/backend/device/device.h"

namespace trainer {

// A device that computes the gradient of a ReLU, and of the bias before it, in one pass over
// memory.
class MasksAndSums {
 public:
  virtual ~MasksAndSums() = default;
  // g = dy where y > 0, else 0; to[c] += the sum of g over channel c. g may be dy; all three are of
  // one type and shape, `to` is f32. False, and nothing done, where these channels take two passes.
  virtual bool ReluGradAndBiasGrad(const ChannelSumsDesc& desc, const ConstTensor& dy,
                                   const ConstTensor& y, const Tensor& g, float* to) const = 0;
};

}  // namespace trainer
