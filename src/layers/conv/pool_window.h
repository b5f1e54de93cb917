#pragma once

#include "trainer/backend/primitives/pool.h"
#include "trainer/layers/layer.h"

namespace trainer {

// Returns the number of windows along one axis: ceil or floor of (in + 2 * pad - kernel) / stride,
// plus 1. With `clip`, the last window is dropped if it would start after the input and its first
// padding.
int64_t PooledSize(int64_t in, int64_t kernel, int64_t stride, int64_t pad, bool ceil, bool clip);

// Returns the windows that pooling_param describes for images of shape `input`, including the
// output size. Does not set the method and `training`. Throws kConfig at the field's line for a
// missing kernel or both forms of one, zeros, a pad that is not smaller than the kernel, windows
// that do not fit, fields that contradict global_pooling, and rounding fields that contradict each
// other.
PoolDesc ReadPoolWindows(const LayerSpec& spec, const Shape& input, DType dtype);

// Returns whether the layer is a max pool, which a preceding layer can compute as well.
inline bool IsMaxPool(const LayerSpec& spec) {
  return spec.type() == "Pooling" &&
         spec.proto().pooling_param().pool() == caffe::PoolingParameter::MAX;
}

}  // namespace trainer
