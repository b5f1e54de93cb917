#pragma once
// What of a net learns, and what keeps its answers from meaning something yet.

#include <string>
#include <vector>

#include "trainer/net/net.h"

namespace trainer {

// Whether an output has a loss weight, so that training minimises something.
bool HasLoss(const Net& net);

// The parameters of a training net with an lr_mult that is not 0 and that no loss gives a gradient,
// in the order of the layers: they keep their initial values.
std::vector<const Param*> UntrainedParams(const Net& net);

// The names of the BatchNorm layers of a net in phase TEST that divide by averages which no
// training iteration has set yet, so that their outputs are about 1 / sqrt(eps) times too large.
std::vector<std::string> LayersWithoutAverages(const Net& net);

}  // namespace trainer
