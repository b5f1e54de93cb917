#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trainer/backend/primitives/primitive.h"
#include "trainer/tensor/tensor.h"

namespace trainer {

// Local response normalisation of images (N, C, H, W):
//   y = x * (k + factor * s)^-beta,  s = the sum of x'^2 over x and its neighbours x'.
// The neighbours are the `half` channels on each side at the same pixel, or within a channel the
// pixels at most `half` away along both axes. Elements outside add nothing.
// Source: Krizhevsky et al., NIPS 2012, section 3.3; factor is its alpha, Caffe's alpha / n.
struct LrnDesc {
  Shape shape;
  bool across = true;
  int64_t half = 2;
  float factor = 1, beta = 0.75f, k = 1;
  bool training = true;  // Backward will be called
  DType dtype = DType::kF32;
};

// Made by Device::NewLrn; used by one thread at a time. Throws kInternal for tensors that differ
// from the planned shape or type. The sums are float.
class LrnPrimitive : public Primitive {
 public:
  // Returns the size of the memory that must be kept from Forward to Backward.
  virtual size_t WorkspaceBytes() const { return 0; }
  virtual size_t ScratchBytes() const { return 0; }  // for Backward
  // Writes y, and keeps in the workspace what Backward needs.
  virtual void Forward(ConstTensor x, Tensor y, std::span<std::byte> workspace) = 0;
  // Sets dx = dy * base^-beta - 2 * factor * beta * x * (the sum over the neighbours of dy * x *
  // base^(-beta - 1)), with base = k + factor * s. Overwrites dx, which must be neither x nor dy.
  virtual void Backward(ConstTensor x, ConstTensor dy, Tensor dx,
                        std::span<const std::byte> workspace, std::span<std::byte> scratch) = 0;
};

}  // namespace trainer
