#pragma once

#include "trainer/layers/layer.h"

namespace trainer {

// Implements Flatten and Reshape: output 0 is input 0 under another shape, in row-major order (N,
// C, H, W). It is a view if the memory orders agree, else a copy.
class NchwReshape {
 public:
  void Setup(SetupContext& ctx, const Shape& out);
  void Forward(const RunContext& run) const;
  void Backward(const RunContext& run) const;

 private:
  void Copy(const RunContext& run, const ConstTensor& from, const Tensor& to) const;

  bool view_ = true;
};

}  // namespace trainer
