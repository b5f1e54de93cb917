#pragma once

#include <string>
#include <vector>

namespace trainer {

class Net;

// Whether every pass of a training net is the same function of its learned weights: no layer brings
// a batch, draws numbers, or keeps a state or running averages.
bool PassesAreIdentical(const Net& net);

// The layers of a training net that draw random numbers, by name.
std::vector<std::string> DrawingLayers(const Net& net);

}  // namespace trainer
