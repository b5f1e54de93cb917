#pragma once
// A convolution in cuDNN's terms. Images lie with channels innermost, all else row-major, as the
// layout rule of Shape has it; weights are put in order by filter_order.h. One spatial axis is a
// plane of one row.

#include <string>

#include "cuda/bindings/errors.h"
#include "cuda/conv/filter_order.h"
#include "cuda/cuda_device.h"

namespace trainer::cuda {

// A descriptor of cuDNN's.
template <class T>
class CudnnOwner {
 public:
  using Make = int (*Cudnn::*)(T**);
  using Destroy = int (*Cudnn::*)(T*);
  CudnnOwner(Make make, Destroy destroy) : destroy_(destroy) {
    CheckCudnn((GetCudnn()->*make)(&object_), "making a descriptor");
  }
  ~CudnnOwner() {
    if (object_ != nullptr) (GetCudnn()->*destroy_)(object_);
  }
  CudnnOwner(const CudnnOwner&) = delete;
  CudnnOwner& operator=(const CudnnOwner&) = delete;
  operator T*() const { return object_; }

 private:
  Destroy destroy_;
  T* object_ = nullptr;
};

class ConvProblem {
 public:
  // Why this library is not asked for it, or "".
  static std::string WhyNot(const CudaDevice& device, const ConvDesc& desc);

  ConvProblem(const CudaDevice& device, const ConvDesc& desc);

  const CudaDevice& device() const { return device_; }
  const ConvDesc& desc() const { return desc_; }
  cudnn::Handle handle() const { return device_.CudnnHandle(); }
  Cudnn::Tensor x() const { return x_; }
  Cudnn::Tensor y() const { return y_; }
  Cudnn::Filter filter() const { return filter_; }
  Cudnn::Convolution conv() const { return conv_; }
  Cudnn::Tensor bias() const { return bias_; }
  const FilterOrder& order() const { return order_; }

  size_t InBytes() const { return static_cast<size_t>(desc_.InShape().Count()) * Size(); }
  size_t OutBytes() const { return static_cast<size_t>(desc_.OutShape().Count()) * Size(); }
  size_t FilterBytes() const { return static_cast<size_t>(order_.Count()) * Size(); }
  size_t Size() const { return SizeOf(desc_.dtype); }

  // What products may be rounded to: f32 is not rounded unless the user allows TF32.
  void SetMath(int math_type);
  void SetFirstMath();
  // The one that an algorithm was found with, where it may be used.
  int AllowedMath(int math_type) const;

  // All that a choice depends on.
  std::string Key(const char* direction) const;

 private:
  const CudaDevice& device_;
  ConvDesc desc_;
  FilterOrder order_;
  CudnnOwner<cudnn::TensorDesc> x_, y_, bias_;
  CudnnOwner<cudnn::FilterDesc> filter_;
  CudnnOwner<cudnn::ConvolutionDesc> conv_;
};

// Throws kInternal for a tensor that does not lie as the library needs it.
void ExpectAligned(const void* data);

}  // namespace trainer::cuda
