#pragma once

#include "trainer/backend/primitives/primitive.h"
#include "trainer/tensor/tensor.h"

namespace trainer {

// y_i = exp(x_i - max x) / sum_j exp(x_j - max x) along one axis of a tensor of any shape. The sums
// are float.
struct SoftmaxDesc {
  Shape shape;
  int axis = 1;  // in [0, rank)
  DType dtype = DType::kF32;
};

// Made by Device::NewSoftmax; used by one thread at a time. Throws kInternal for tensors that
// differ from the planned shape or type.
class SoftmaxPrimitive : public Primitive {
 public:
  // Sets y to the softmax of x; y may be x.
  virtual void Forward(ConstTensor x, Tensor y) = 0;
  // Sets dx_i = y_i * (dy_i - sum_j dy_j * y_j); dx may be dy.
  virtual void Backward(ConstTensor y, ConstTensor dy, Tensor dx) = 0;
};

}  // namespace trainer
