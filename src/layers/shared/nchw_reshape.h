#pragma once

#include "trainer/layers/layer.h"

namespace trainer {

// Output 0 is input 0 under another shape, in row-major order (N, C, H, W): a view where the memory
// orders agree, else a copy. The work of Flatten and Reshape.
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
