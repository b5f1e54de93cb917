#pragma once

#include "program.h"

namespace trainer {

// Sets the gradients of all weighted outputs to loss_weight * *factor, on the device.
void ScaleLossGradients(const Graph& graph, const Program& program, const Device& device,
                        const float* factor);

}  // namespace trainer
