#pragma once
// NaN that a faster primitive loses, where something else tells of it.

namespace trainer {

// What a layer or a plan also is whose device may have a faster way to compute it that gives 0 for
// NaN, as a ReLU of max(0, y) does. It keeps NaN until it is told that nobody depends on that.
//
// A convolution in f16 hides nothing by it, where its weights learn and an update is left out whose
// gradients are not finite: products of f16 numbers and their sums in f32 cannot overflow, so NaN
// comes of an input, a weight or a bias that is not finite. Of such an input the gradient of the
// weights is not finite either, as inf * 0 is NaN; and weights and biases stay finite where no such
// gradient moves them. In f32 and bf16 sums do overflow, so nothing changes there.
class MayDropNan {
 public:
  virtual ~MayDropNan() = default;
  // For all calls from now on.
  virtual void AllowDroppedNan() = 0;
};

}  // namespace trainer
