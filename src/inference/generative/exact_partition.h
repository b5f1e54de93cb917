#pragma once

#include "trainer/inference/generative/rbm.h"

namespace trainer {

// Computes log Z exactly. Enumerates the states of the hidden or of the visible units, whichever
// are fewer. Throws kUsage if both sides have more than 22 units.
double ExactPartition(const Device& device, const RbmModel& rbm);

}  // namespace trainer
