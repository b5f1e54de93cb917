#pragma once
// What can be checked of a solver before any net is built.

#include "trainer/config/solver_spec.h"

namespace trainer {

// Throws kConfig at the field's line; kUnavailable for what this build cannot do. With a list, the
// errors of all checks go there.
void CheckSolver(const SolverSpec& solver, ErrorList* errors);

// Warns where iter_size is not one larger batch. To be called once the training net is read.
void WarnOfMeansOfPasses(const SolverSpec& solver);

}  // namespace trainer
