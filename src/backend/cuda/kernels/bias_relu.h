#pragma once

#include "trainer/backend/device/device.h"

namespace trainer::cuda {

// Adds bias[channel] to y unless `bias` is null, then computes max(0, y) if `relu` is set; NaN is
// kept. rows.length is the number of channels of y.
void AddBiasRelu(const Device& device, const Rows& rows, const float* bias, bool relu, void* y,
                 DType dtype);

// Sets y = bias[channel].
void SetBias(const Device& device, const Rows& rows, const float* bias, void* y, DType dtype);

}  // namespace trainer::cuda
