#pragma once
// A net that only tests, whose batches are shared by several replicas.

#include "trainer/layers/takes_share.h"
#include "trainer/net/net.h"

namespace trainer {

// Lets the net's data layers bring this replica's share of the batches that they would bring alone.
// Before the first pass, and before Restore. Batch k of the run is then pass k: the caller sets
// passes. False, and nothing is changed, where a batch's outputs depend on the batches before it,
// or where the net does more than compute outputs: a layer keeps a state, changes the weights,
// writes a file, gives outputs whose size may change, or reads what cannot be shared.
bool ShareBatches(Net& net, const TestShard& share);

// Lets the data layers of a net that is not shared bring these batches. Before the first pass, and
// before Restore.
void ShareData(Net& net, const TestShard& share);

}  // namespace trainer
