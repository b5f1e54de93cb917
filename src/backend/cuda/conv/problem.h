#pragma once
// A convolution as cuDNN descriptors. Images are channels-last and all other tensors row-major, by
// the layout rule of Shape; filter_order.h reorders the weights. One spatial axis becomes a plane
// with one row.

#include <string>

#include "cuda/bindings/errors.h"
#include "cuda/conv/filter_order.h"
#include "cuda/cuda_device.h"

namespace trainer::cuda {

// Owns a cuDNN descriptor.
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

// The descriptors of one convolution, for all directions.
class ConvProblem {
 public:
  // Returns the reason why cuDNN cannot compute `desc`, or "".
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

  // Sets the precision of products: f32 is not rounded unless the user allows TF32.
  void SetMath(int math_type);
  // Sets the precision with which the library searches for algorithms: the fastest that is allowed.
  void SetFirstMath();
  // Returns the math type that an algorithm was found with, or a stricter one if TF32 is not
  // allowed.
  int AllowedMath(int math_type) const;

  // A text of all properties that the choice of an algorithm depends on.
  std::string Key(const char* direction) const;

 private:
  const CudaDevice& device_;
  ConvDesc desc_;
  FilterOrder order_;
  CudnnOwner<cudnn::TensorDesc> x_, y_, bias_;
  CudnnOwner<cudnn::FilterDesc> filter_;
  CudnnOwner<cudnn::ConvolutionDesc> conv_;
};

// Throws kInternal if the tensor is not aligned as the library needs it.
void ExpectAligned(const void* data);

}  // namespace trainer::cuda
