#pragma once
// How far the data of a net is read, and how long that kept it waiting.

#include "trainer/net/net.h"

namespace trainer {

// How long the net has waited for its data layers' batches, in seconds.
double SecondsWaitedForData(const Net& net);

// How often its first layer that reads records came back to the first one; -1 without such a layer.
int64_t EpochOf(const Net& net);

// The images or records of a pass: the first axis of what that layer gives out; 0 without one.
int64_t RecordsPerPass(const Net& net);

}  // namespace trainer
