#pragma once
// Finds where the values of a pass stop being finite, for the message with which a run ends.

#include <string>

#include "trainer/net/net.h"

namespace trainer {

// Repeats the last forward pass layer by layer and describes the first output that is not finite:
// its layer, the records of the batch with such values, and the record with the largest input value
// of that layer. For example "the first values that are not finite (NaN or infinity) are in the
// output of layer 'ip' (InnerProduct, net.prototxt:7:1), in 1 of the 8 records of the batch: record
// '00000012' of data/train_lmdb".
// Returns "" if the pass cannot be repeated (asynchronous device, several virtual ranks or
// activation slots, layers with state) or if every value is finite. The net must not be used
// afterwards. No rank waits for another: layers compute as in a run of one rank.
std::string DescribeBrokenPass(Net& net);

}  // namespace trainer
