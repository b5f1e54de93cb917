#pragma once
// The solver and nets of a run after all changes, as one file.

#include <string>

#include "trainer/config/solver_spec.h"

namespace trainer {

// Returns the solver with its nets inlined and every --set applied, so that training from it
// repeats the run. Deprecated fields are upgraded; comments are lost.
caffe::SolverParameter ResolvedSolver(const SolverSpec& spec);
// Returns ResolvedSolver(spec) in prototxt format.
std::string ResolvedText(const SolverSpec& spec);

}  // namespace trainer
