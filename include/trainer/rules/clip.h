#pragma once

#include <span>

#include "trainer/backend/device.h"

namespace trainer {

// The L2 norm of all numbers of `values`, which lie on the device. `scratch` is one float there.
float L2Norm(const Device& device, std::span<const float> values, float* scratch);

}  // namespace trainer
