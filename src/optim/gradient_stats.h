#pragma once

#include <span>

#include "trainer/backend/device/device.h"
#include "trainer/backend/loops/tensor_list.h"

namespace trainer {

// Sets *sum to the sum of the squares of `values`. Both are on the device; the host does not wait.
void SumOfSquares(const Device& device, std::span<const float> values, float* sum);

// Sets for each parameter of [first, last) the sums of squares of its gradient and of its weights.
void SumSquaresPerParam(const Device& device, const TensorList& parameters, int first, int last,
                        float* grad_squares, float* weight_squares);

// Returns the L2 norm of `values`, which are on the device, and waits for it. `scratch` is one
// float on the device.
float L2Norm(const Device& device, std::span<const float> values, float* scratch);

}  // namespace trainer
