#pragma once
// Loops for an exponential moving average (EMA) of the weights. The arrays of a segment are the
// averages and the weights of one parameter, f32 on the device.

#include "trainer/backend/loops/tensor_list.h"

namespace trainer {

// Returns the decay factor of the average after update number `updates`, counted from 1. It is
// smaller in the first updates, so that the random initial weights do not dominate the average for
// 1 / (1 - decay) updates. Source: TensorFlow's ExponentialMovingAverage with num_updates.
float EmaKeep(float decay, int updates);

// Sets average = keep * average + (1 - keep) * weight for all parameters.
void UpdateEma(const Device& device, float keep, const TensorList& averages);
// Sets average = weight for all parameters.
void StartEma(const Device& device, const TensorList& averages);
// Exchanges average and weight.
void SwapEma(const Device& device, const TensorList& averages);

}  // namespace trainer
