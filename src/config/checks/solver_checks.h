#pragma once
// What can be checked of a solver before any net is built.

#include "trainer/config/solver_spec.h"

namespace trainer {

// Throws kConfig at the field's line; kUnavailable for what this build cannot do. With a list, the
// errors of all checks go there.
void CheckSolver(const SolverSpec& solver, ErrorCollector* errors);

}  // namespace trainer
