#pragma once

#include <string>
#include <vector>

#include "trainer/config/solver_spec.h"
#include "trainer/monitor/test_score.h"

namespace trainer {

// The score that the solver's field `field` (keep_best, patience) compares tests by. The first
// test net has the `outputs`. Throws kConfig at the field's line if the solver has no test net, and
// at the line of best_output if none of `outputs` has that name.
TestScore ScoreFor(const char* field, const SolverSpec& spec,
                   const std::vector<std::string>& outputs);

}  // namespace trainer
