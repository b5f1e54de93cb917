#pragma once

#include <string>
#include <vector>

#include "trainer/config/solver_spec.h"
#include "trainer/monitor/test_score.h"

namespace trainer {

// Returns the score by which the solver's field `field` (keep_best, patience) compares tests.
// `outputs` are the outputs of the first test net. Throws kConfig at the field's line if the solver
// has no test net, and at the line of best_output if none of `outputs` has that name.
TestScore ScoreFor(const char* field, const SolverSpec& spec,
                   const std::vector<std::string>& outputs);

}  // namespace trainer
