#pragma once

#include "trainer/layers/all_reduce.h"
#include "trainer/net/net.h"

namespace trainer {

// Lets the layers of a training net know of the batches of all replicas. Before the first pass.
// Throws kConfig at a layer that needs it, but behind one that changes the size of batches: a batch
// may be empty there, and then this replica alone would not run the layer. No pass is recorded from
// the first sum on.
void JoinReplicas(Net& net, const AllReduceFn& replicas);

}  // namespace trainer
