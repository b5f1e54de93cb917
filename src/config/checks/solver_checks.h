#pragma once
// Checks the fields of a solver before any net is built.

#include "trainer/config/solver_spec.h"

namespace trainer {

// Checks the fields of a solver that can be checked without its nets. Throws kConfig at the field's
// line, and kUnavailable for a setting that this build does not support. If `errors` is given, the
// errors of all checks are added to it instead.
void CheckSolver(const SolverSpec& solver, ErrorCollector* errors);

}  // namespace trainer
