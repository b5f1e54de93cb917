#pragma once
// The three directions of a convolution as separate kernels, so that each can use the
// implementation that suits it: the candidates of kernel_registry.h. Data and scratch are as in
// ConvPrimitive.

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "kernel_registry.h"
#include "trainer/backend/primitives/conv.h"

namespace trainer {

// The kernel of the forward pass.
class ConvForward {
 public:
  virtual ~ConvForward() = default;
  virtual std::string Name() const = 0;
  virtual size_t ScratchBytes() const = 0;
  // y = x * weight [+ bias], then max(0, y) where ConvDesc::relu asks for it; NaN stays until
  // AllowDroppedNan.
  virtual void Run(const void* x, const float* weight, const float* bias, void* y,
                   std::span<std::byte> scratch) = 0;
  // Returns the layout of packed weights, as ConvPrimitive::packed_layout does.
  virtual std::optional<PackedLayout> packed_layout() const { return std::nullopt; }
  // See ConvPrimitive::UsePackedWeight.
  virtual void UsePackedWeight(const void* /*copy*/, const bool* /*holds*/) {}
  // See ConvPrimitive::AllowDroppedNan.
  virtual void AllowDroppedNan() {}
};

// The kernel of the data gradient.
class ConvBackwardData {
 public:
  virtual ~ConvBackwardData() = default;
  virtual std::string Name() const = 0;
  virtual size_t ScratchBytes() const = 0;
  // Overwrites dx.
  virtual void Run(const void* dy, const float* weight, void* dx, std::span<std::byte> scratch) = 0;
  // Returns the layout of packed weights, as ConvPrimitive::packed_layout does.
  virtual std::optional<PackedLayout> packed_layout() const { return std::nullopt; }
  // See ConvPrimitive::UsePackedWeight.
  virtual void UsePackedWeight(const void* /*copy*/, const bool* /*holds*/) {}
};

// The kernel of the weight gradient and the bias gradient.
class ConvBackwardWeight {
 public:
  virtual ~ConvBackwardWeight() = default;
  virtual std::string Name() const = 0;
  virtual size_t ScratchBytes() const = 0;
  // Adds to dweight, and to dbias unless it is null.
  virtual void Run(const void* x, const void* dy, float* dweight, float* dbias,
                   std::span<std::byte> scratch) = 0;
};

template <class Step>
using RegisterConvKernel = RegisterKernel<ConvDesc, Step>;

// Joins three kernels to one primitive, on any device.
std::unique_ptr<ConvPrimitive> JoinConvKernels(const ConvDesc& desc,
                                               std::unique_ptr<ConvForward> forward,
                                               std::unique_ptr<ConvBackwardData> data,
                                               std::unique_ptr<ConvBackwardWeight> weight);

// Takes the first candidate of `device` that accepts each direction. Throws kUnavailable if there
// is none.
std::unique_ptr<ConvPrimitive> ChooseConv(const Device& device, const ConvDesc& desc);

}  // namespace trainer
