#pragma once
// Converts values between the device's memory order and row-major floats on the host.

#include <span>

#include "trainer/backend/device/device.h"

namespace trainer {

// Copy a value to the host as f32 in row-major (N, C, H, W) order, and back. `host` must have as
// many elements as the value.
void ReadNchw(const Device& device, const ConstTensor& value, std::span<float> host);
void WriteNchw(const Device& device, std::span<const float> host, const Tensor& value);

}  // namespace trainer
