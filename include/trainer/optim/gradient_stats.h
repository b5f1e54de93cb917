#pragma once

#include <span>

#include "trainer/backend/device/device.h"

namespace trainer {

// *sum = the sum of the squares of `values`; all is on the device and nothing is read back.
void SumOfSquares(const Device& device, std::span<const float> values, float* sum);

// The L2 norm of all numbers of `values`, which are on the device. `scratch` is one float there.
float L2Norm(const Device& device, std::span<const float> values, float* scratch);

}  // namespace trainer
