#pragma once
// A run's files as they were in force.

#include <string>

#include "trainer/config/solver_spec.h"

namespace trainer {

// The solver with its nets inside and every change of --set made: training from it repeats the run.
// Old forms are written as new ones, comments are lost.
caffe::SolverParameter ResolvedSolver(const SolverSpec& spec);
// The same as a prototxt.
std::string ResolvedText(const SolverSpec& spec);

}  // namespace trainer
