#pragma once

#include "trainer/net/net.h"

namespace trainer {

// How long the net has waited for its data layers' batches, in seconds.
double SecondsWaitedForData(const Net& net);

}  // namespace trainer
