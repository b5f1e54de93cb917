#pragma once
// The first pass of a net in a preflight check.

#include "check_nets.h"

namespace trainer {

// Runs a forward pass, and a backward pass of a training net, and reports the loss, values that are
// not finite and layers that do not learn. `fresh`: the fillers set the weights. A loss
// that is not finite ends the check before the backward pass. Adds the outputs of a single number
// to `passes`.
void RunFirstPass(const PreflightNet& checked, Net& net, const Device& device, bool fresh,
                  PreflightReport* report, Json* passes);

}  // namespace trainer
