#pragma once

namespace trainer {

class Net;

// Whether every pass of a training net is the same function of its learned weights: no layer brings
// a batch, draws numbers, or keeps a state or running averages.
bool PassesAreAlike(const Net& net);

}  // namespace trainer
