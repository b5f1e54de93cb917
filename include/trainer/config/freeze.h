#pragma once
// Layers that do not learn (LayerParameter::freeze).

#include <string>
#include <vector>

#include "trainer/config/solver_spec.h"

namespace trainer {

// Whether a layer of this type, with these fields, has weights or running statistics.
bool HasWeights(const LayerSpec& layer);

// Returns the layers of the solver's training net that have weights, in the order of the file.
std::vector<LayerSpec> LayersWithWeights(const SolverSpec& spec);

// Sets freeze: true in layers of the training net as --freeze=`which` says: "all-but-last", a
// number of layers with weights from the first on, or a NamePattern between slashes. Throws kUsage
// if `which` is something else, or selects no layer with weights, or all of them.
void FreezeLayers(const std::string& which, SolverSpec* spec);

}  // namespace trainer
