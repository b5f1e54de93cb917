#pragma once
// Values between the device's memory order and the host's row-major floats.

#include <span>

#include "trainer/backend/device/device.h"

namespace trainer {

// Copies a value to the host as f32 in row-major (N, C, H, W) order; the reverse. `host` holds as
// many numbers as the value.
void ReadNchw(const Device& device, const ConstTensor& value, std::span<float> host);
void WriteNchw(const Device& device, std::span<const float> host, const Tensor& value);

}  // namespace trainer
