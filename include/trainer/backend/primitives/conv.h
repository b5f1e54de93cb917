#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "trainer/backend/primitives/packed_layout.h"
#include "trainer/backend/primitives/primitive.h"
#include "trainer/tensor/tensor.h"

namespace trainer {

// A cross-correlation over `kernel.size()` spatial axes, at least 1. More than 3 axes are slow.
//
// Shapes: x (N, C, spatial...); weight (M, C / group, kernel...) row-major as in Caffe's files;
//   bias (M); y (N, M, out...), where per axis
//   out = (in + 2*pad - dilation*(kernel-1) - 1) / stride + 1, rounded down.
// Images (two spatial axes) are NHWC in memory by the layout rule of Shape.
struct ConvDesc {
  int64_t batch = 0, in_channels = 0, out_channels = 0, group = 1;
  std::vector<int64_t> in, kernel, stride, pad, dilation;  // one entry per spatial axis
  bool bias = true;
  bool relu = false;          // Forward writes max(0, y)
  DType dtype = DType::kF32;  // x, y and their gradients; weight, bias and their gradients are f32

  std::vector<int64_t> Out() const;  // entries below 1: the kernel does not fit
  Shape InShape() const;
  Shape WeightShape() const;
  Shape OutShape() const;
  // Multiply-adds of one forward pass; BackwardWeight and BackwardData cost the same each.
  int64_t Macs() const;
};

// A convolution prepared for one shape: descriptors and algorithms are chosen on creation, so that
// the calls only compute. Made by Device::NewConv; used by one thread at a time. The calls allocate
// nothing; `scratch` must be aligned to 64 bytes. Sums are float, and repeat bit for bit for the
// same shape, number of threads and processor. Source: gradients as in arXiv:1603.07285, chapter 4.
class ConvPrimitive : public Primitive {
 public:
  virtual size_t ScratchBytes() const = 0;  // the maximum over the calls below
  // Writes y, with the bias if the description has one, and max(0, y) in its place if it asks for
  // that.
  virtual void Forward(ConstTensor x, const float* weight, const float* bias, Tensor y,
                       std::span<std::byte> scratch) = 0;
  // Adds the gradient of the weight to dweight, and the gradient of the bias to dbias unless it is
  // null.
  virtual void BackwardWeight(ConstTensor x, ConstTensor dy, float* dweight, float* dbias,
                              std::span<std::byte> scratch) = 0;
  // Overwrites dx with the gradient of x.
  virtual void BackwardData(ConstTensor dy, const float* weight, Tensor dx,
                            std::span<std::byte> scratch) = 0;

  // Returns the layout of the packed weights that the primitive multiplies by, or nothing if it
  // uses the weights as they are. Without UsePackedWeight it packs them in each call.
  virtual std::optional<PackedLayout> packed_layout() const { return std::nullopt; }
  // Makes calls from now on use `copy`, the packed weights on the device (aligned to 64 bytes),
  // whenever *holds is true. Both must outlive the primitive.
  virtual void UsePackedWeight(const void* /*copy*/, const bool* /*holds*/) {}
  // Allows a faster primitive that gives 0 for NaN, as a ReLU of max(0, y) does, in all calls from
  // now on. Without this call the primitive keeps NaN.
  //
  // A convolution in f16 hides no error by it if its weights learn and updates with non-finite
  // gradients are skipped: products of f16 numbers and their sums in f32 cannot overflow, so NaN
  // comes from an input, a weight or a bias that is not finite. The weight gradient of such an
  // input is not finite either, because inf * 0 is NaN, and weights and biases stay finite because
  // such gradients never update them. In f32 and bf16 sums do overflow, so nothing changes there.
  virtual void AllowDroppedNan() {}
};

// The gradients of the weight and the bias of a convolution whose output only a max pool reads.
// Only the winners of the pool's windows contribute to them. The primitive sums over the winners
// and does not compute the gradient of the convolution's output, which is 0 at all other pixels.
// Device::NewPooledConvGradient makes the primitive; one thread at a time uses it. The calls
// allocate nothing, and their sums repeat as ConvPrimitive's do.
class PooledConvGradient : public Primitive {
 public:
  virtual size_t ScratchBytes() const = 0;
  // Adds the gradient of the weight to dweight, and the gradient of the bias to dbias unless it is
  // null. x is the convolution's input, dy the gradient of the pool's output, `workspace` what the
  // pool's Forward wrote. Throws kInternal for tensors that differ from the planned shape or type.
  virtual void Run(ConstTensor x, ConstTensor dy, std::span<const std::byte> workspace,
                   float* dweight, float* dbias, std::span<std::byte> scratch) = 0;
};

// Makes the definition in plain loops, for any number of axes. It is the reference of the tests and
// the last candidate of the selection.
std::unique_ptr<ConvPrimitive> MakeReferenceConv(const ConvDesc& desc);

}  // namespace trainer
