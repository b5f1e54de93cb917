#pragma once
// Checks which parameters of a net learn, and which layers do not give meaningful outputs yet.

#include <string>
#include <vector>

#include "trainer/net/net.h"

namespace trainer {

// Whether an output has a loss weight, so that training minimises something.
bool HasLoss(const Net& net);

// Returns the parameters of a training net that have an lr_mult other than 0 but no gradient from a
// loss, in layer order. They keep their initial values.
std::vector<const Param*> UntrainedParams(const Net& net);

// Returns the names of the BatchNorm layers in phase TEST whose running averages no training
// iteration has set yet. Their outputs are about 1 / sqrt(eps) times too large.
std::vector<std::string> LayersWithoutAverages(const Net& net);

}  // namespace trainer
