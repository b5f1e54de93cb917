#pragma once

#include "trainer/config/solver_spec.h"

namespace trainer {

// Rewrites solver_type as type. Throws kConfig if both are given.
Upgrades RewriteSolverType(SolverSpec* solver);

}  // namespace trainer
