#pragma once

#include <string>
#include <vector>

#include "trainer/layers/boltzmann.h"
#include "trainer/net/net.h"

namespace trainer {

// One RBM layer of a net. `weights` points to the net's parameters in device memory.
struct RbmModel {
  ValueId input;  // of the layer in the net
  std::string name;
  BoltzmannUnits units;
  BoltzmannWeights weights;
};

// Returns the RBM layers of the net with output HIDDEN, in the order of the layers.
std::vector<RbmModel> FindRbms(const Net& net);

// Returns the RBM called `name`. An empty name selects the only RBM. Throws kConfig if there is
// no RBM, and kUsage, with the flag --layer, if the name is unknown or an empty name is ambiguous.
const RbmModel& SelectRbm(const std::vector<RbmModel>& rbms, const std::string& name);

}  // namespace trainer
