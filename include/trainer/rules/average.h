#pragma once
// The loops of a running average of weights. The arrays of a segment are the averages and the
// weights of a parameter, f32 on the device.

#include "trainer/backend/loops/tensor_list.h"

namespace trainer {

// What an average keeps of itself when it follows update number `updates`, counted from 1. The low
// values of the first updates keep the weights that it begins as, which are random, from weighing
// on it for 1 / (1 - decay) updates. Source: the ExponentialMovingAverage of TensorFlow.
float AverageKeeps(float decay, int updates);

// average = keep * average + (1 - keep) * weight
void BlendAverage(const Device& device, float keep, const TensorList& averages);
// average = weight
void StartAverage(const Device& device, const TensorList& averages);
// The two are exchanged.
void SwapAverage(const Device& device, const TensorList& averages);

}  // namespace trainer
