#pragma once

#include "trainer/backend/primitives/pool.h"
#include "trainer/layers/layer.h"

namespace trainer {

// Pooling that draws one value of each window, with a probability proportional to the value; in
// testing, the mean under these probabilities: sum x^2 / sum x. The values should not be negative.
// Source: Zeiler and Fergus, "Stochastic pooling", arXiv:1301.3557. Shapes as in PoolDesc.

// `choice` gets one int32 per output, the drawn position h * W + w, for the backward pass.
void StochasticPoolTrain(const Device& device, const PoolDesc& desc, const PhiloxKey& key,
                         const uint32_t* pass, const ConstTensor& x, const Tensor& y,
                         int32_t* choice);
// Computes y in testing: sum x^2 / sum x of each window.
void StochasticPoolTest(const Device& device, const PoolDesc& desc, const ConstTensor& x,
                        const Tensor& y);

// Computes dx from dy: each window's gradient goes to the element that it drew. Overwrites dx.
void StochasticPoolBackward(const Device& device, const PoolDesc& desc, const ConstTensor& dy,
                            const int32_t* choice, const Tensor& dx);

}  // namespace trainer
