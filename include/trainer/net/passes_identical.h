#pragma once

#include <string>
#include <vector>

namespace trainer {

class Net;

// Whether every pass of a training net is the same function of its learned weights: no layer reads
// a batch, uses random numbers, or keeps a state or running statistics.
bool PassesAreIdentical(const Net& net);

// Returns the names of the layers of a training net that use random numbers.
std::vector<std::string> DrawingLayers(const Net& net);

}  // namespace trainer
