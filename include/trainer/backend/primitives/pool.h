#pragma once

#include <cfloat>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "trainer/backend/primitives/primitive.h"
#include "trainer/base/host_device.h"
#include "trainer/tensor/tensor.h"

namespace trainer {

enum class PoolMethod { kMax, kAverage };

// Pooling of images (N, C, H, W) over windows by Caffe's rules. The output size is given: the layer
// rounds it up or down and clips the last window. Windows extend past the image by `pad` at the
// start and as far as the output size needs at the end.
// Max ignores padding, starts at Start() and takes the first of equal values in row-major order.
// Average divides by the window's area clipped to [-pad, size + pad): padding counts as zeros.
struct PoolDesc {
  PoolMethod method = PoolMethod::kMax;
  int64_t batch = 0, channels = 0, in_h = 0, in_w = 0, out_h = 0, out_w = 0;
  int64_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0;
  bool training = true;  // keep a max pool's winners for Backward and ArgMax
  bool relu = false;  // max only: write max(0, y); a window without a positive value has no winner
  DType dtype = DType::kF32;

  // Returns what a value must exceed to be the largest of a window.
  HD float Start() const { return relu ? 0.0f : -FLT_MAX; }
  Shape InShape() const { return {batch, channels, in_h, in_w}; }
  Shape OutShape() const { return {batch, channels, out_h, out_w}; }
};

// Made by Device::NewPool; used by one thread at a time. A device's primitive throws kInternal for
// tensors that differ from the planned shape or type.
class PoolPrimitive : public Primitive {
 public:
  // Returns the size of the memory that must be kept from Forward to Backward: the winners of a max
  // pool. 0 for an average.
  virtual size_t WorkspaceBytes() const = 0;
  // Writes y and, for a max pool in training, the winners.
  virtual void Forward(ConstTensor x, Tensor y, std::span<std::byte> workspace) = 0;
  // Overwrites dx with the gradient of x.
  virtual void Backward(ConstTensor dy, Tensor dx, std::span<const std::byte> workspace) = 0;
  // Max only, after Forward. Writes the winner's index h * W + w in the input plane as float,
  // shaped like y; -1 for a window without a winner.
  virtual void ArgMax(std::span<const std::byte> workspace, Tensor mask) = 0;
};

// Makes a pool of plain loops in the order of the definition: the reference of the tests.
std::unique_ptr<PoolPrimitive> MakeReferencePool(const PoolDesc& desc);

}  // namespace trainer
