#pragma once

#include "trainer/backend/device/device.h"

namespace trainer::cuda {

// Fills `bytes` bytes at `data` on the device with numbers of a storage type in [-1, 1), always the
// same ones.
void FillWithRandom(const Device& device, DType type, size_t bytes, void* data);

}  // namespace trainer::cuda
