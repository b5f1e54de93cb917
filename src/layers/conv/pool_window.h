#pragma once

#include "trainer/backend/primitives/pool.h"
#include "trainer/layers/layer.h"

namespace trainer {

// How many windows there are along one axis: ceil or floor of (in + 2 * pad - kernel) / stride,
// plus 1. With `clip`, a last window that would start after the input and its first padding is
// dropped.
int64_t PooledSize(int64_t in, int64_t kernel, int64_t stride, int64_t pad, bool ceil, bool clip);

// The windows that pooling_param asks for on images of shape `input`, output size included; the
// method and `training` are left alone. Refuses, at the field's line: no kernel or both forms of
// one, zeros, a pad that is not smaller than the kernel, windows that do not fit, fields that
// contradict global_pooling or, about the rounding, each other.
PoolDesc ReadPoolWindows(const LayerSpec& spec, const Shape& input, DType dtype);

}  // namespace trainer
