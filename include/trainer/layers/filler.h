#pragma once
// Initial values of parameters and of DummyData.

#include <span>

#include "trainer/base/random/philox.h"
#include "trainer/config/layer_spec.h"
#include "trainer/tensor/shape.h"

namespace trainer {

// Fills `values` (row-major, host memory) as Caffe's filler of that type would: constant, uniform,
// gaussian (sparse too), positive_unitball, xavier, msra, bilinear. The shape gives fan_in = count
// / shape[0] and fan_out = count / shape[1]. `pass` makes repeated fills differ. Throws kConfig at
// the layer's line for an unknown type (nearest name), a negative std, sparse with another type
// than gaussian, bilinear on a blob that is not 4-D with square kernels.
void Fill(const caffe::FillerParameter& filler, const Shape& shape, const PhiloxKey& key,
          uint32_t pass, const LayerSpec& layer, std::span<float> values);

}  // namespace trainer
