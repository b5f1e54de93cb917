#pragma once

#include "trainer/net/param_store.h"

namespace trainer {

// Warns about layers whose weights are all zero and do not learn, so that their output does not
// depend on their input. Then a file of weights was forgotten, or its layers have other names.
void WarnOfZeroWeights(const ParamStore& store, const std::vector<Param*>& params);

}  // namespace trainer
