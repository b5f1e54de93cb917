#pragma once
// The solver that a user names, with changes.

#include <string>
#include <vector>

#include "trainer/config/net_spec.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

struct SolverSource {
  std::string file;
  std::vector<std::string> set;  // changes of fields: "base_lr=0.05"
  StateFlags state;              // level and stages of the nets
};

// Reads the solver and its nets. Throws as LoadSolver and RequireNamedStage do.
SolverSpec ReadSolver(const SolverSource& source);

// Throws kUsage if the layers of the net have rules with stages, but with none of `given`, which is
// then a typing error.
void RequireNamedStage(const std::vector<std::string>& given, const NetSpec& spec);

}  // namespace trainer
