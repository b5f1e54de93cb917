#pragma once
// Consequences of storing gradients in f16.

namespace trainer {

class Net;

// Whether the gradient of a value is stored in f16. Small gradients would become 0, so the loss
// must be multiplied by a factor and the gradients of weights divided by it. Source: Micikevicius
// et al., "Mixed precision training", ICLR 2018.
bool HasF16Gradients(const Net& net);

// Says that updates of the net's weights are left out where gradients are not finite, so that
// layers whose weights learn may lose NaN in their outputs: see ConvPrimitive::AllowDroppedNan.
void LetGradientsTellOfNan(Net& net);

}  // namespace trainer
