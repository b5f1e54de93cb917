#pragma once
// The three directions of a convolution as separate steps, so that each gets the implementation
// that suits it. Each maker returns null when it does not take the description; data and scratch
// are as in ConvPlan.

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "trainer/backend/conv.h"

namespace trainer::cpu {

class ConvForward {
 public:
  virtual ~ConvForward() = default;
  virtual std::string Name() const = 0;
  // Whether Run heeds ConvDesc::relu; else the caller does it.
  virtual bool Rectifies() const { return false; }
  virtual size_t ScratchBytes() const = 0;
  virtual void Run(const void* x, const float* weight, const float* bias, void* y,
                   std::span<std::byte> scratch) = 0;
};

class ConvBackwardData {
 public:
  virtual ~ConvBackwardData() = default;
  virtual std::string Name() const = 0;
  virtual size_t ScratchBytes() const = 0;
  virtual void Run(const void* dy, const float* weight, void* dx, std::span<std::byte> scratch) = 0;
};

class ConvBackwardWeight {
 public:
  virtual ~ConvBackwardWeight() = default;
  virtual std::string Name() const = 0;
  virtual size_t ScratchBytes() const = 0;
  virtual void Run(const void* x, const void* dy, float* dweight, float* dbias,
                   std::span<std::byte> scratch) = 0;
};

// How oneDNN sees x, y and their gradients.
enum class ConvLayout {
  kOurs,     // as they lie in memory
  kLibrary,  // as the library likes them, copied through scratch
  kFloat,    // the same, as f32
};
// `any_kernel` also takes the library's slow kernels ("ref", "gemm").
// How a weight lies in memory: as Caffe's files have it, (M, C, kernel...), or (C, M, kernel...);
// the group comes first in both.
enum class WeightOrder { kOutputsFirst, kInputsFirst };
std::unique_ptr<ConvForward> MakeOneDnnForward(const ConvDesc& desc, ConvLayout layout,
                                               bool any_kernel,
                                               WeightOrder order = WeightOrder::kOutputsFirst);
std::unique_ptr<ConvBackwardData> MakeOneDnnBackwardData(const ConvDesc& desc, ConvLayout layout,
                                                         bool any_kernel);
std::unique_ptr<ConvBackwardWeight> MakeOneDnnBackwardWeight(const ConvDesc& desc,
                                                             ConvLayout layout, bool any_kernel);

// The data gradient as a forward convolution of dy with the turned and transposed weight. Images,
// stride 1, a pad below the kernel's reach and channels in whole vectors only. oneDNN's forward
// kernels are faster than its backward ones by up to a half.
std::unique_ptr<ConvBackwardData> MakeTurnedBackwardData(const ConvDesc& desc);

// 1 x 1 kernels: the weight gradient in bf16, channels in whole vectors; the data gradient with a
// stride.
std::unique_ptr<ConvBackwardWeight> MakePointwiseBackwardWeight(const ConvDesc& desc);
std::unique_ptr<ConvBackwardData> MakePointwiseBackwardData(const ConvDesc& desc);

}  // namespace trainer::cpu
