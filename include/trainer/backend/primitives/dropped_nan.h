#pragma once
// Permission for a faster primitive to lose NaN where another check detects it.

namespace trainer {

// Implemented by a layer or primitive whose device may have a faster kernel that returns 0 for NaN,
// as a ReLU computed as max(0, y) does. NaN is kept until AllowDroppedNan is called.
//
// Dropping NaN hides no error of a convolution in f16 if its weights are trained and updates with
// non-finite gradients are skipped. Products of f16 numbers and their f32 sums cannot overflow, so
// a NaN comes from a non-finite input, weight or bias. A non-finite input makes the gradient of the
// weights non-finite too, because inf * 0 is NaN; and weights and biases stay finite because
// updates with such gradients are skipped. Sums in f32 and bf16 can overflow, so those types always
// keep NaN.
class MayDropNan {
 public:
  virtual ~MayDropNan() = default;
  // Applies to all calls from now on.
  virtual void AllowDroppedNan() = 0;
};

}  // namespace trainer
