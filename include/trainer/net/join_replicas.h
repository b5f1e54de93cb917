#pragma once

#include "trainer/layers/all_reduce.h"
#include "trainer/net/net.h"

namespace trainer {

// Gives the layers of a training net an all-reduce over the batches of all ranks. Call before the
// first pass. Throws kConfig at a layer that needs it but follows a layer that changes the batch
// size: its batch may be empty on one rank, which would then skip the layer while the others wait.
// No pass is captured after the first such sum.
void JoinReplicas(Net& net, const AllReduceFn& replicas);

}  // namespace trainer
