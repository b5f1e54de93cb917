#pragma once

#include "execute/bindings.h"

namespace trainer {

// Sets the gradients of all weighted outputs to loss_weight * *factor; both are on the device.
void ScaleSeedGradients(const Graph& graph, const Bindings& bindings, const Device& device,
                        const float* factor);

}  // namespace trainer
