#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "trainer/backend/primitives/primitive.h"
#include "trainer/tensor/tensor.h"

namespace trainer {

// Batch normalisation over the channels of a tensor (N, C, ...), with the operations that may be
// fused into the same pass over memory:
//   z = (x - mean) / sqrt(variance + eps);  y = max(0, z * scale + shift + other)
// where scale and shift (C), `other` and the maximum with 0 are each optional.
// Types: x, other, y and their gradients are stored as `dtype`; per-channel arrays and sums are
// f32.
// Source: Ioffe and Szegedy, arXiv:1502.03167; moments in chunks: Chan, Golub, LeVeque, "Updating
// formulae and a pairwise algorithm for computing sample variances" (1979).
struct BatchNormDesc {
  Shape shape;
  float eps = 1e-5f;
  bool stored = false;  // use given mean and variance instead of x's own
  bool other = false, relu = false;
  bool backward_from_output = false;  // Backward reads y instead of x; only where y = z
  DType dtype = DType::kF32;
};

// Arrays (C) on the device that stay in the workspace from Forward to Backward.
struct BatchNormStats {
  float* mean = nullptr;
  float* inverse = nullptr;  // the variance, until Forward replaces it by 1 / sqrt(variance + eps)
  float* factor = nullptr;   // inverse * scale
};

// The operands of a forward pass. scale and shift may be null (1 and 0); `other` is read only if
// the description has it.
struct BatchNormTensors {
  ConstTensor x, other;
  const float *scale = nullptr, *shift = nullptr;
  Tensor y;
};

// The operands of a backward pass. A null output is not computed. dx and dother are overwritten and
// may be dy; dscale and dshift are added to.
struct BatchNormGradients {
  ConstTensor x, y, dy;  // y is read for backward_from_output, and for relu with other
  const float *scale = nullptr, *shift = nullptr;
  Tensor dx, dother;
  float *dscale = nullptr, *dshift = nullptr;
};

// Made by Device::NewBatchNorm; used by one thread at a time. Sums are taken in chunks of pixels
// that depend only on the shape, so results repeat for any number of threads. Throws kInternal for
// tensors that differ from the planned shape or type.
class BatchNormPrimitive : public Primitive {
 public:
  // Returns the size of the memory that must be kept from Forward to Backward.
  virtual size_t WorkspaceBytes() const = 0;
  virtual size_t ScratchBytes() const = 0;
  // Returns the arrays of the statistics in a workspace of WorkspaceBytes().
  virtual BatchNormStats StatsIn(std::span<std::byte> workspace) const = 0;

  // Sets the function `join`, which Backward calls from now on between its two passes, unless the
  // moments are stored or dx is not requested. `means` has 2 C means over the batch, on the device:
  // of the gradients of z * scale and of their products with z. `join` may replace them by the
  // means over a larger batch, from which dx is then computed; dscale and dshift use this batch
  // alone. Does nothing on a device that only plans.
  virtual void SetStatsAllReduce(std::function<void(float* means, int64_t count)> /*join*/) {}

  // Sets at.mean and at.inverse to the mean and the variance of x, over N and the axes after C.
  virtual void Moments(ConstTensor x, const BatchNormStats& at, std::span<std::byte> scratch) = 0;
  // Writes y and completes `at`, whose mean and variance must be set. y may be x if Backward reads
  // only y.
  virtual void Forward(const BatchNormTensors& in, const BatchNormStats& at) = 0;
  // Writes y again from the statistics that Forward left in `at`.
  virtual void Recompute(const BatchNormTensors& in, const BatchNormStats& at) = 0;
  // Computes the gradients that `in` asks for. `at` holds the statistics that Forward left.
  virtual void Backward(const BatchNormGradients& in, const BatchNormStats& at,
                        std::span<std::byte> scratch) = 0;
};

}  // namespace trainer
