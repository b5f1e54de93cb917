#pragma once
// The solver that a user names, with changes.

#include <string>
#include <vector>

#include "trainer/config/net_spec.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

// A solver's file, and the changes that the user makes to it and its nets.
struct SolverSource {
  std::string file;
  std::vector<std::string> set;  // changes of fields: "base_lr=0.05"
  StateFlags state;              // level and stages of the nets
  std::string freeze = "";       // --freeze: see FreezeLayers; "": none
  int unfreeze_at = 0;           // --unfreeze_at; 0: as the solver says
};

// Applies `freeze` and `unfreeze_at` to the solver. Throws as FreezeLayers does.
void ApplyFreezing(const SolverSource& source, SolverSpec* spec);

// Reads the solver and its nets. Throws as LoadSolver and RequireNamedStage do.
SolverSpec ReadSolver(const SolverSource& source);

}  // namespace trainer
