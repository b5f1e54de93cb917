#pragma once
// Whether this process may take the memory of its run.

#include "trainer/solver/solver.h"

namespace trainer {

// Throws kResource where a run on the CPU takes more memory than this process may have: what it
// needs, what there is, and which batch would fit. To be called before the first iteration: by then
// little of what the solver allocated is in use. A GPU's memory is looked at by each net.
void RequireMemory(const SolverSpec& spec, const Device& device, const Rank& replica,
                   Solver& solver);

}  // namespace trainer
