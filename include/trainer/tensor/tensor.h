#pragma once

#include <cstddef>

#include "trainer/tensor/dtype.h"
#include "trainer/tensor/shape.h"

namespace trainer {

// A view of numbers that an arena owns. `data` is in the memory of the device that runs the step.
struct Tensor {
  void* data = nullptr;
  Shape shape;
  DType dtype = DType::kF32;

  int64_t Count() const { return shape.Count(); }
  size_t Bytes() const { return static_cast<size_t>(Count()) * SizeOf(dtype); }
  // Returns the elements as storage type T, which must match `dtype`.
  template <class T>
  T* As() const {
    return static_cast<T*>(data);
  }
  // Returns the elements of a tensor of type kF32.
  float* f32() const { return As<float>(); }
};

// A read-only Tensor.
struct ConstTensor {
  const void* data = nullptr;
  Shape shape;
  DType dtype = DType::kF32;

  ConstTensor() = default;
  ConstTensor(const void* numbers, const Shape& dims, DType type = DType::kF32)
      : data(numbers), shape(dims), dtype(type) {}
  ConstTensor(const Tensor& t) : data(t.data), shape(t.shape), dtype(t.dtype) {}

  int64_t Count() const { return shape.Count(); }
  size_t Bytes() const { return static_cast<size_t>(Count()) * SizeOf(dtype); }
  // Returns the elements as storage type T, which must match `dtype`.
  template <class T>
  const T* As() const {
    return static_cast<const T*>(data);
  }
  // Returns the elements of a tensor of type kF32.
  const float* f32() const { return As<float>(); }
};

}  // namespace trainer
