#pragma once

#include "trainer/net/param_store.h"

namespace trainer {

// Warns about layers whose weights are all zero and are not trained, so their output does not
// depend on their input. Most likely a file of weights was forgotten, or its layers have other
// names.
void WarnOfZeroWeights(const ParamStore& store, const std::vector<Param*>& params);

}  // namespace trainer
