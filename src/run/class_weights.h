#pragma once
// Replaces class_weight_power in a solver's nets by the class weights that it stands for.

#include "trainer/base/ranks/communicator.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

// Counts the classes of the training set for each loss with class_weight_power, and writes
// class_weight in its place: into the training net, and into the layers with the same name of the
// test nets. Rank 0 of `ranks` (null: a run alone) reads the set and the others get the result from
// it. Returns whether a net was changed; without class_weight_power reads nothing. Throws kConfig
// at the field's line if the labels of the loss cannot be counted, and as compiling the training
// net and CountLabels do.
bool ResolveClassWeights(Communicator* ranks, SolverSpec* spec);

}  // namespace trainer
