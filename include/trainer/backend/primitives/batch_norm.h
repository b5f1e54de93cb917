#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "trainer/backend/primitives/primitive.h"
#include "trainer/tensor/tensor.h"

namespace trainer {

// Batch normalisation over the channels of a tensor (N, C, ...), with what may follow it in the
// same pass over memory:
//   z = (x - mean) / sqrt(variance + eps);  y = max(0, z * scale + shift + other)
// where scale and shift (C), `other` and the maximum with 0 may each be absent.
// Types: x, other, y and their gradients are stored as `dtype`; all arrays per channel are f32, and
// so are the sums.
// Source: Ioffe and Szegedy, arXiv:1502.03167; moments in chunks: Chan, Golub, LeVeque, "Updating
// formulae and a pairwise algorithm for computing sample variances" (1979).
struct BatchNormDesc {
  Shape shape;
  float eps = 1e-5f;
  bool stored = false;  // mean and variance are constants, not those of x
  bool other = false, relu = false;
  bool backward_from_output = false;  // Backward knows y in place of x; only where y = z
  DType dtype = DType::kF32;
};

// What lives in the workspace from Forward to Backward: arrays (C) on the device.
struct BatchNormStats {
  float* mean = nullptr;
  float* inverse = nullptr;  // the variance, until Forward makes it 1 / sqrt(variance + eps)
  float* factor = nullptr;   // inverse * scale
};

// The operands of a forward pass. scale and shift may be null (1 and 0); `other` is read where the
// description says so.
struct BatchNormTensors {
  ConstTensor x, other;
  const float *scale = nullptr, *shift = nullptr;
  Tensor y;
};

// Those of a backward pass. What is null is not wanted. Overwrites dx and dother, which may be dy;
// adds to dscale and dshift.
struct BatchNormGradients {
  ConstTensor x, y, dy;  // y only for backward_from_output, and for relu with other
  const float *scale = nullptr, *shift = nullptr;
  Tensor dx, dother;
  float *dscale = nullptr, *dshift = nullptr;
};

// Made by Device::NewBatchNorm; used by one thread at a time. Sums are taken in chunks of pixels
// that depend on the shape alone, so that results repeat for any number of threads. Tensors that
// differ from the planned shape or type: kInternal.
class BatchNormPrimitive : public Primitive {
 public:
  virtual size_t WorkspaceBytes() const = 0;
  virtual size_t ScratchBytes() const = 0;
  virtual BatchNormStats StatsIn(std::span<std::byte> workspace) const = 0;

  // From now on Backward calls it between its two passes, unless the moments are stored or dx is
  // not wanted: with the 2 C means over the batch, on the device, of the gradients of z * scale and
  // of their products with z. It may put those of a larger batch in their place, from which dx is
  // then computed; dscale and dshift stay those of the batch. Nothing where the device only plans.
  virtual void SetStatsAllReduce(std::function<void(float* means, int64_t count)> /*join*/) {}

  // at.mean and at.inverse = the mean and the variance, over N and the axes after C, of x.
  virtual void Moments(ConstTensor x, const BatchNormStats& at, std::span<std::byte> scratch) = 0;
  // Finishes `at`, whose mean and variance are set, and writes y. y may be x where Backward reads
  // y alone.
  virtual void Forward(const BatchNormTensors& in, const BatchNormStats& at) = 0;
  // Writes y again from what Forward left.
  virtual void Recompute(const BatchNormTensors& in, const BatchNormStats& at) = 0;
  virtual void Backward(const BatchNormGradients& in, const BatchNormStats& at,
                        std::span<std::byte> scratch) = 0;
};

}  // namespace trainer
