#pragma once

#include "trainer/backend/device/device.h"

namespace trainer::cuda {

// y += bias[channel], unless `bias` is null; then max(0, y) where `relu`: NaN stays. The channels
// of y lie along rows.length.
void AddBiasRelu(const Device& device, const Rows& rows, const float* bias, bool relu, void* y,
                 DType dtype);

// y = bias[channel]
void SetBias(const Device& device, const Rows& rows, const float* bias, void* y, DType dtype);

}  // namespace trainer::cuda
