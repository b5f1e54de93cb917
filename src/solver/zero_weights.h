#pragma once

#include "trainer/net/param_store.h"

namespace trainer {

// Warns of layers whose weights are all zero and do not learn: what they compute tells nothing of
// their input. A file of weights was forgotten, or has other names.
void WarnOfZeroWeights(const ParamStore& store, const std::vector<Param*>& params);

}  // namespace trainer
