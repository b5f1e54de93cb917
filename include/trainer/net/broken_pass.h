#pragma once
// Where the numbers of a pass stop being finite, for the message with which a run ends.

#include <string>

#include "trainer/net/net.h"

namespace trainer {

// Computes the last forward pass again, layer by layer, and describes the first output that is not
// finite: its layer, the records of the batch that have such numbers, and the record with the
// largest number that the layer read. For example "the first numbers that are not finite are the
// output of layer 'ip' (InnerProduct, net.prototxt:7:1), in 1 of the 8 records of the batch: record
// '00000012' of data/train_lmdb".
// "" where the pass cannot be repeated: on a device that runs later, with several parts, or with
// layers that keep a state; and where every number of it is finite. The net must not be used
// afterwards. Layers compute as in a run alone: no replica waits for another.
std::string DescribeBrokenPass(Net& net);

}  // namespace trainer
