#pragma once

#include "trainer/config/solver_spec.h"

namespace trainer {

// solver_type as type. Throws kConfig when both are given.
Upgrades RewriteSolverType(SolverSpec* solver);

}  // namespace trainer
