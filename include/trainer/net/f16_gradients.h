#pragma once
// What follows from how the values of a net are stored.

namespace trainer {

class Net;

// Whether the gradient of a value is stored in f16: small ones would become 0 there, so that the
// loss is to be multiplied by a factor which gradients of weights are divided by again.
// Source: P. Micikevicius et al., "Mixed precision training", ICLR 2018.
bool HasF16Gradients(const Net& net);

// Says that updates of the net's weights are left out where gradients are not finite, so that
// layers whose weights learn may lose NaN in their outputs: see ConvPrimitive::AllowDroppedNan.
void LetGradientsTellOfNan(Net& net);

}  // namespace trainer
