#pragma once
// The loops of a running average of weights. All arrays are f32 on the device, `count` long.

#include "trainer/backend/device.h"

namespace trainer {

// average = keep * average + (1 - keep) * weight
void BlendAverage(const Device& device, float keep, int64_t count, float* average, float* weight);
// average = weight
void StartAverage(const Device& device, int64_t count, float* average, float* weight);
// The two are exchanged.
void SwapAverage(const Device& device, int64_t count, float* average, float* weight);

}  // namespace trainer
