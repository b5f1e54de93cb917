#pragma once

#include "trainer/layers/layer.h"

namespace trainer {

// Implements Flatten and Reshape: output 0 is input 0 under another shape, in row-major order (N,
// C, H, W). It is a view if the memory orders agree, else a copy.
class NchwReshape {
 public:
  // Declares output 0 with shape `out`. Throws kConfig if it has another count than the input.
  void Setup(SetupContext& ctx, const Shape& out);
  void Forward(const RunContext& run) const;
  void Backward(const RunContext& run) const;

 private:
  // Copies `from` to `to` in row-major order. Two images go through scratch memory.
  void Copy(const RunContext& run, const ConstTensor& from, const Tensor& to) const;

  bool view_ = true;
};

}  // namespace trainer
